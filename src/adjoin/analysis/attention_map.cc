#include "adjoin/analysis/attention_map.h"

#include "adjoin/analysis/token_rank.h"

namespace adjoin::analysis {
namespace {

/// Images and windows as one axis: (X, H, ..).
torch::Tensor joined(const torch::Tensor& x) { return x.dim() == 5 ? x.flatten(0, 1) : x; }

}  // namespace

AttentionMap attention_map(const PlacedBlock& placed, const Weights& weights,
                           const nn::Heads& heads) {
  const torch::NoGradGuard no_grad;
  const int64_t tokens = heads.v.size(-2);
  nn::Constants constants;
  nn::Context context;
  context.constants = &constants;
  const auto made_of = [&](const torch::Tensor& values) {
    return nn::mixed(placed, weights, {heads.q, heads.k, values}, context);
  };
  AttentionMap map;
  if (placed.block->mixer.kind == MixerKind::kRelative) {
    map.offset = made_of(torch::zeros_like(heads.v));
  }
  if (placed.block->mixer.kind == MixerKind::kSoftmax) {  // which takes values of any width
    auto shape = heads.v.sizes().vec();
    shape.back() = tokens;
    map.weights = made_of(torch::eye(tokens, heads.v.options()).expand(shape));
    return map;
  }
  const int64_t width = heads.v.size(-1);
  std::vector<torch::Tensor> columns;  // as many unit vectors at a time as a head has channels
  for (int64_t first = 0; first < tokens; first += width) {
    const int64_t count = std::min(width, tokens - first);
    auto units = torch::zeros_like(heads.v);
    units.narrow(-2, first, count).diagonal(0, -2, -1).fill_(1);
    const auto made = made_of(units);
    columns.push_back((map.offset.defined() ? made - map.offset : made).narrow(-1, 0, count));
  }
  map.weights = torch::cat(columns, -1);
  return map;
}

torch::Tensor attention_entropy(const torch::Tensor& weights) {
  const auto size = joined(weights).abs();
  const auto share = size / size.sum(-1, true).clamp_min(std::numeric_limits<float>::min());
  return torch::xlogy(share, share)
      .sum(-1)
      .neg()
      .clamp_min(0)
      .mean(at::IntArrayRef{0, 2})
      .to(torch::kFloat64);
}

torch::Tensor attention_spectrum(const torch::Tensor& weights) {
  return singular_values(joined(weights)).mean(0);
}

}  // namespace adjoin::analysis
