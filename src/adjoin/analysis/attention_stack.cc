#include "adjoin/analysis/attention_stack.h"

#include <fmt/format.h>

#include "adjoin/analysis/attention_map.h"
#include "adjoin/core/error.h"
#include "adjoin/models/forward.h"
#include "adjoin/nn/block.h"
#include "adjoin/nn/linear.h"

namespace adjoin::analysis {
namespace {

torch::Tensor product(const torch::Tensor& a, const torch::Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? torch::matmul(a, b) : a;
}

/// First `a`, then `b`.
TokenMap then(const TokenMap& a, const TokenMap& b) {
  return {product(b.left, a.left), product(a.right, b.right)};
}

/// A layer norm with the deviation of every token as it was: a map and a constant row.
struct FrozenNorm {
  TokenMap map;
  torch::Tensor bias;  ///< (C); undefined: 0
};

FrozenNorm frozen_norm(const Weights& weights, const std::string& prefix, double eps,
                       const torch::Tensor& x, bool is_there) {
  if (!is_there) return {};
  const int64_t width = x.size(-1);
  const auto deviation = torch::sqrt(x.var(-1, /*unbiased=*/false) + eps);
  const auto centre = torch::eye(width, x.options()) - 1.0 / static_cast<double>(width);
  return {{torch::diag(1 / deviation), centre * nn::vector_of(weights, prefix + "weight")},
          nn::vector_of(weights, prefix + "bias")};
}

/// The heads of a block without norms: each as a map, and what they add whatever comes in.
struct FrozenHeads {
  std::vector<TokenMap> heads;
  torch::Tensor constant;  ///< (N, C)
};

FrozenHeads frozen_heads(const PlacedBlock& placed, const Weights& weights,
                         const torch::Tensor& seen, const torch::Tensor& seen_bias) {
  const BlockSpec& block = *placed.block;
  const bool is_lsh = block.mixer.kind == MixerKind::kLsh;
  const std::string prefix = placed.name + ".attn.";
  const std::string fused = prefix + (is_lsh ? "qv." : "qkv.");
  const int64_t first = (is_lsh ? 1 : 2) * block.attention_dim();
  const auto map = attention_map(placed, weights, nn::heads_of(placed, weights, seen.unsqueeze(0)));
  const auto weight = weights.at(fused + "weight").flatten(0, -2);  // (3 H d, C)
  const auto bias = nn::vector_of(weights, fused + "bias");
  const auto& out = weights.at(prefix + "proj.weight");  // (C, H d)
  const auto out_bias = nn::vector_of(weights, prefix + "proj.bias");
  FrozenHeads result;
  result.constant = torch::zeros_like(seen);
  if (out_bias.defined()) result.constant += out_bias;
  for (int64_t h = 0; h < block.heads; ++h) {
    const int64_t row = first + h * block.head_dim;
    const auto value = weight.narrow(0, row, block.head_dim).t();             // (C, d)
    const auto back = out.narrow(1, h * block.head_dim, block.head_dim).t();  // (d, C)
    const auto left = map.weights[0][h];                                      // (N, N)
    auto row_of_values = torch::zeros({block.head_dim}, seen.options());
    if (bias.defined()) row_of_values += bias.narrow(0, row, block.head_dim);
    if (seen_bias.defined()) row_of_values += torch::matmul(seen_bias, value);
    auto always = left.sum(1, true) * row_of_values;  // (N, d): P 1 b^T
    if (map.offset.defined()) always = always + map.offset[0][h];
    result.constant += torch::matmul(always, back);
    result.heads.push_back({left, torch::matmul(value, back)});
  }
  return result;
}

StackLayer layer_of(const PlacedBlock& placed, double eps, const Weights& weights,
                    const torch::Tensor& x, const StackOptions& options) {
  const HalfNorms norms = attention_norms(placed.block->norm);
  const auto norm = [&](const char* which, const torch::Tensor& of) {
    const bool is_there = which != nullptr && options.has_norms;
    return frozen_norm(weights, placed.name + "." + (which == nullptr ? "" : which), eps, of,
                       is_there);
  };
  const FrozenNorm before = norm(norms.before, x);
  auto seen = before.map(x);
  if (before.bias.defined()) seen = seen + before.bias;
  const FrozenHeads frozen = frozen_heads(placed, weights, seen, before.bias);
  StackLayer layer;
  layer.constant = frozen.constant;
  for (const TokenMap& head : frozen.heads) layer.heads.push_back(then(before.map, head));
  if (options.has_skips) layer.skip.emplace();
  const auto value = [&] {
    auto sum = layer.constant;
    for (const TokenMap& head : layer.heads) sum = sum + head(x);
    return sum;
  };
  const auto apply = [&](const FrozenNorm& after) {
    for (TokenMap& head : layer.heads) head = then(head, after.map);
    layer.constant = after.map(layer.constant);
    if (after.bias.defined()) layer.constant = layer.constant + after.bias;
  };
  apply(norm(norms.after, value()));
  const FrozenNorm last = norm(norms.last, layer.skip ? value() + x : value());
  apply(last);
  if (layer.skip) layer.skip = last.map;
  return layer;
}

}  // namespace

torch::Tensor TokenMap::operator()(const torch::Tensor& x) const {
  const auto seen = left.defined() ? torch::matmul(left, x) : x;
  return right.defined() ? torch::matmul(seen, right) : seen;
}

AttentionStack attention_stack(const Network& network, const torch::Tensor& image,
                               const StackOptions& options) {
  const torch::NoGradGuard no_grad;
  ModelSpec spec = network.spec;
  AttentionStack stack;
  bool has_shortcuts = false;
  for_each_block(spec, [&](BlockSpec& block) {
    has_shortcuts = has_shortcuts || block.shortcut;
    block.shortcut.reset();
  });
  stack.notes.emplace_back(
      "MLPs are left out: an activation function is no map of a fixed form, so this is the "
      "attention of the network alone");
  if (has_shortcuts) stack.notes.emplace_back("augmented shortcuts are left out likewise");
  if (!spec.skips.empty()) stack.notes.emplace_back("skips between blocks are left out");
  const Weights weights = network.weights.to(image.device(), torch::kFloat64);
  nn::Context context;
  context.has_norms = options.has_norms;
  context.has_skips = options.has_skips;
  context.has_mlps = false;
  auto x = models::embed(spec, weights, image.to(torch::kFloat64));
  stack.input = x[0];
  for (const PlacedBlock& placed : placed_blocks(spec)) {
    if (placed.window) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("{}: has windows and stages whose tokens are merged; paths are for "
                              "families without, vit and t2t",
                              spec.name));
    }
    stack.layers.push_back(layer_of(placed, spec.norm_eps, weights, x[0], options));
    x = nn::settled(nn::attend(placed, spec.norm_eps, weights, {x}, context));
  }
  stack.output = x[0];
  return stack;
}

}  // namespace adjoin::analysis
