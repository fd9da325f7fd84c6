#include "adjoin/nn/block.h"

#include <cmath>
#include <map>

#include "adjoin/nn/attention/softmax.h"
#include "adjoin/nn/attention/window.h"
#include "adjoin/nn/linear.h"
#include "adjoin/nn/mlp.h"
#include "adjoin/nn/recompute.h"

namespace adjoin::nn {
namespace {

torch::Tensor attention(const PlacedBlock& placed, const Weights& weights,
                        const std::string& prefix, const torch::Tensor& x, const Context& context) {
  const BlockSpec& spec = *placed.block;
  if (placed.window) return window_attention(weights, prefix, x, spec, *placed.window, context);
  const double scale = 1 / std::sqrt(static_cast<double>(spec.head_dim));
  const auto mixed = softmax_attention(linear(weights, prefix + "qkv.", x), spec.heads, scale);
  return dropout(linear(weights, prefix + "proj.", mixed), context.dropout, context);
}

}  // namespace

torch::Tensor block(const PlacedBlock& placed, double norm_eps, const Weights& weights,
                    const torch::Tensor& x, const Context& context) {
  const std::string prefix = placed.name + ".";
  const double rate = placed.block->drop_path;
  const auto attended = attention(placed, weights, prefix + "attn.",
                                  layer_norm(weights, prefix + "norm1.", x, norm_eps), context);
  const auto y = x + drop_path(attended, rate, context);
  const auto fed =
      mlp(weights, prefix + "mlp.", layer_norm(weights, prefix + "norm2.", y, norm_eps), context);
  return y + drop_path(fed, rate, context);
}

torch::Tensor blocks(const ModelSpec& spec, const Weights& weights, torch::Tensor x,
                     const Context& context,
                     const std::function<torch::Tensor(size_t, torch::Tensor)>& before) {
  const std::vector<PlacedBlock> placed = placed_blocks(spec);
  std::map<int64_t, torch::Tensor> skipped;  // outputs that a later block reads
  for (const Skip& skip : spec.skips) skipped.try_emplace(skip.from);
  for (size_t i = 0; i < placed.size(); ++i) {
    if (before) x = before(i, std::move(x));
    for (const Skip& skip : spec.skips) {
      if (skip.to == static_cast<int64_t>(i)) x = x + skipped.at(skip.from);
    }
    // What is kept for backward outlives this call, and perhaps its context.
    const auto again = [&weights, context, eps = spec.norm_eps,
                        one = placed[i]](const torch::Tensor& input) {
      return block(one, eps, weights, input, context);
    };
    x = context.is_recomputed ? recomputed(again, x, context)
                              : block(placed[i], spec.norm_eps, weights, x, context);
    context.report(placed[i].name, x);
    const auto kept = skipped.find(static_cast<int64_t>(i));
    if (kept != skipped.end()) kept->second = x;
  }
  return x;
}

}  // namespace adjoin::nn
