#include "adjoin/nn/block.h"

#include <cmath>
#include <map>

#include "adjoin/nn/attention/heads.h"
#include "adjoin/nn/attention/relative.h"
#include "adjoin/nn/attention/softmax.h"
#include "adjoin/nn/attention/window.h"
#include "adjoin/nn/mlp.h"
#include "adjoin/nn/recompute.h"

namespace adjoin::nn {
namespace {

Branch attention(const PlacedBlock& placed, const Weights& weights, const std::string& prefix,
                 const torch::Tensor& x, const Context& context) {
  const BlockSpec& spec = *placed.block;
  if (placed.window) return window_attention(weights, prefix, x, spec, *placed.window, context);
  const double scale = 1 / std::sqrt(static_cast<double>(spec.head_dim));
  const auto heads = project_heads(weights, prefix + "qkv.", x, spec.heads);
  const auto mixed =  // (B, H, N, d)
      spec.mixer.kind == MixerKind::kRelative
          ? relative_attention(weights, prefix, heads[0], heads[1], heads[2], scale,
                               spec.mixer.distance, context)
          : scaled_dot_product(heads[0], heads[1], heads[2], scale, {});
  return projected(weights, prefix + "proj.", mixed.transpose(1, 2).flatten(2), context);
}

/// The stream with a branch that is yet to be added.
Stream with_branch(Stream x, Branch branch, const TokenOrder& order, double drop_rate,
                   const Context& context) {
  branch.scale = drop_path(x.sum.size(0), x.sum, drop_rate, context);
  branch.order = order;
  x.branch = std::move(branch);
  return x;
}

}  // namespace

Stream attend(const PlacedBlock& placed, double norm_eps, const Weights& weights, Stream x,
              const Context& context) {
  const TokenOrder order =
      placed.window ? window_order(*placed.window, x.sum.device(), context) : TokenOrder{};
  const auto whole = next_norm(x, weights, placed.name + ".norm1.", norm_eps, context, order);
  Branch branch = attention(placed, weights, placed.name + ".attn.", whole, context);
  return with_branch(std::move(x), std::move(branch), order, placed.block->drop_path, context);
}

Stream feed_forward(const PlacedBlock& placed, double norm_eps, const Weights& weights, Stream x,
                    const Context& context) {
  const auto mixed = next_norm(x, weights, placed.name + ".norm2.", norm_eps, context);
  Branch branch = mlp(weights, placed.name + ".mlp.", mixed, context);
  return with_branch(std::move(x), std::move(branch), {}, placed.block->drop_path, context);
}

Stream block(const PlacedBlock& placed, double norm_eps, const Weights& weights, Stream x,
             const Context& context) {
  return feed_forward(placed, norm_eps, weights,
                      attend(placed, norm_eps, weights, std::move(x), context), context);
}

Stream blocks(const ModelSpec& spec, const Weights& weights, const torch::Tensor& input,
              const Context& context, const std::function<Stream(size_t, Stream)>& before) {
  const std::vector<PlacedBlock> placed = placed_blocks(spec);
  std::map<int64_t, torch::Tensor> skipped;  // outputs that a later block reads
  for (const Skip& skip : spec.skips) skipped.try_emplace(skip.from);
  Stream x{input};
  for (size_t i = 0; i < placed.size(); ++i) {
    if (before) x = before(i, std::move(x));
    for (const Skip& skip : spec.skips) {
      if (skip.to == static_cast<int64_t>(i)) x = {settled(x) + skipped.at(skip.from)};
    }
    if (context.block) {
      x = {context.block(i, settled(x))};
    } else if (context.is_recomputed) {
      // What is kept for backward outlives this call, and perhaps its context.
      const auto again = [&weights, context, eps = spec.norm_eps,
                          one = placed[i]](const torch::Tensor& from) {
        return settled(block(one, eps, weights, {from}, context));
      };
      x = {recomputed(again, settled(x), context)};
    } else {
      x = block(placed[i], spec.norm_eps, weights, std::move(x), context);
    }
    const auto kept = skipped.find(static_cast<int64_t>(i));
    if (kept == skipped.end() && !context.tap) continue;
    x = {settled(x)};
    context.report(placed[i].name, x.sum);
    if (kept != skipped.end()) kept->second = x.sum;
  }
  return x;
}

}  // namespace adjoin::nn
