#include "adjoin/nn/block.h"

#include <map>

#include "adjoin/nn/attention/mix.h"
#include "adjoin/nn/attention/window.h"
#include "adjoin/nn/linear.h"
#include "adjoin/nn/mlp.h"
#include "adjoin/nn/recompute.h"
#include "adjoin/nn/shortcut.h"
#include "adjoin/spec/tensors.h"

namespace adjoin::nn {
namespace {

/// One half of a block: where its norms stand, and what it is made of.
struct Half {
  const PlacedBlock& placed;
  HalfNorms norms;
  const char* shortcut;
  double norm_eps;
  const Weights& weights;
  const Context& context;

  std::string name(const char* part) const { return placed.name + "." + part; }

  /// What the branch reads of the stream, its tokens in an order.
  torch::Tensor read(Stream& x, const TokenOrder& order) const {
    if (norms.before != nullptr) {
      return next_norm(x, weights, name(norms.before), norm_eps, context, order);
    }
    x = {settled(x)};
    return order.tokens.defined() ? x.sum.index_select(1, order.tokens) : x.sum;
  }

  /// The stream with what the branch gives for what it read.
  Stream add(Stream x, const torch::Tensor& seen, Branch branch, const TokenOrder& order) const {
    if (norms.after != nullptr) {
      const auto whole = branch.bias.defined() ? branch.value + branch.bias : branch.value;
      branch = {layer_norm(weights, name(norms.after), whole, norm_eps, context), {}, {}, {}};
    }
    branch.scale = drop_path(x.sum.size(0), x.sum, placed.block->drop_path, context);
    if (!context.has_skips) x = {torch::zeros_like(x.sum)};
    branch.order = order;
    const auto& augmented = placed.block->shortcut;
    if (augmented) x = with_shortcut(std::move(x), seen, branch, *augmented);
    x.branch = std::move(branch);
    if (norms.last == nullptr) return x;
    return {layer_norm(weights, name(norms.last), settled(x), norm_eps, context)};
  }

 private:
  /// Adds the shortcut's branches to the sum, and scales it and the branch that is yet to come.
  Stream with_shortcut(Stream x, const torch::Tensor& seen, Branch& branch,
                       const Shortcut& augmented) const {
    if (augmented.branches > 0) {
      const Branch more{
          shortcut_branches(weights, name(shortcut) + ".", augmented, seen), {}, {}, branch.order};
      x = {settled({x.sum, more})};
    }
    if (augmented.scale == 1) return x;
    branch.scale = branch.scale.defined() ? branch.scale * augmented.scale
                                          : x.sum.new_full({x.sum.size(0)}, augmented.scale);
    return {x.sum * augmented.scale};
  }
};

Half attention_half(const PlacedBlock& placed, double norm_eps, const Weights& weights,
                    const Context& context) {
  return {placed, attention_norms(placed.block->norm), kShortcuts[0], norm_eps, weights, context};
}

Half mlp_half(const PlacedBlock& placed, double norm_eps, const Weights& weights,
              const Context& context) {
  return {placed, mlp_norms(placed.block->norm), kShortcuts[1], norm_eps, weights, context};
}

}  // namespace

Stream attend(const PlacedBlock& placed, double norm_eps, const Weights& weights, Stream x,
              const Context& context) {
  const Half half = attention_half(placed, norm_eps, weights, context);
  const TokenOrder order =
      placed.window ? window_order(*placed.window, x.sum.device(), context) : TokenOrder{};
  const auto seen = half.read(x, order);
  Branch branch =
      projected(weights, half.name("attn.proj."), mix(placed, weights, seen, context), context);
  return half.add(std::move(x), seen, std::move(branch), order);
}

torch::Tensor read_by_attention(const PlacedBlock& placed, double norm_eps, const Weights& weights,
                                const torch::Tensor& x, const Context& context) {
  const TokenOrder order =
      placed.window ? window_order(*placed.window, x.device(), context) : TokenOrder{};
  Stream stream{x};
  return attention_half(placed, norm_eps, weights, context).read(stream, order);
}

torch::Tensor read_by_mlp(const PlacedBlock& placed, double norm_eps, const Weights& weights,
                          Stream& x, const Context& context) {
  return mlp_half(placed, norm_eps, weights, context).read(x, {});
}

Stream feed_forward(const PlacedBlock& placed, double norm_eps, const Weights& weights, Stream x,
                    const Context& context) {
  if (!context.has_mlps) return x;
  const Half half = mlp_half(placed, norm_eps, weights, context);
  const auto seen = half.read(x, {});
  Branch branch = mlp(weights, half.name("mlp."), seen, context);
  return half.add(std::move(x), seen, std::move(branch), {});
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
      const bool is_here = skip.to == static_cast<int64_t>(i) && context.has_skips;
      if (!is_here) continue;
      auto from = skipped.at(skip.from);
      if (skip.kind == SkipKind::kCirculant) {
        from = shortcut_branches(weights,
                                 skip_prefix(placed[static_cast<size_t>(skip.from)], placed[i]),
                                 skip_shortcut(placed[i].embed_dim), from);
      }
      x = {settled(x) + from};
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
