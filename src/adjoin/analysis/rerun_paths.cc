#include "adjoin/analysis/rerun_paths.h"

#include "adjoin/analysis/token_rank.h"
#include "adjoin/models/forward.h"
#include "adjoin/nn/attention/mix.h"
#include "adjoin/nn/block.h"
#include "adjoin/nn/linear.h"

namespace adjoin::analysis {
namespace {

/// What one head of a block alone gives: (B, N, C) -> (B, N, C).
torch::Tensor one_head(const PlacedBlock& placed, double eps, const Weights& weights,
                       const torch::Tensor& x, int64_t head) {
  const std::string proj = placed.name + ".attn.proj.";
  const int64_t width = placed.block->head_dim;
  const auto seen = nn::read_by_attention(placed, eps, weights, x, {});
  const auto mixed =
      nn::mixed(placed, weights, nn::heads_of(placed, weights, seen), {}).select(1, head);
  const auto back = weights.at(proj + "weight").narrow(1, head * width, width);  // (C, d)
  auto y = torch::matmul(mixed, back.t());
  const auto bias = nn::vector_of(weights, proj + "bias");
  if (bias.defined()) y = y + bias;
  return torch::layer_norm(y, {y.size(-1)}, {}, {}, eps);
}

torch::Tensor walked(const Network& network, const std::vector<PlacedBlock>& placed,
                     const torch::Tensor& tokens, const Path& path) {
  auto x = tokens;
  for (size_t l = 0; l < path.size(); ++l) {
    if (path[l] == kBeside) continue;
    x = one_head(placed[l], network.spec.norm_eps, network.weights, x, path[l]);
  }
  return x;
}

}  // namespace

std::vector<RerunLength> rerun_paths(const Network& given, const AttentionStack& stack,
                                     const Sample& sample, const PathOptions& options) {
  const torch::NoGradGuard no_grad;
  const Weights weights = given.weights.to(sample.images.device(), torch::kFloat64);
  const Network network{given.spec, weights};
  const std::vector<PlacedBlock> placed = placed_blocks(network.spec);
  const auto tokens = models::embed(network.spec, weights, sample.images.to(torch::kFloat64));
  nn::Context head_alone;  // blocks hand on what they get: norm and head are left
  head_alone.block = [](size_t, const torch::Tensor& x) { return x; };
  head_alone.has_skips = false;
  std::vector<RerunLength> found;
  for (int64_t k = 0; k <= std::ssize(stack.layers); ++k) {
    const auto paths = some_paths(stack, k, options.sampled, options.seed);
    if (paths.empty()) continue;
    RerunLength length{k, std::ssize(paths), 0, {}};
    auto sum = torch::zeros_like(tokens);
    for (const Path& path : paths) {
      const auto x = walked(network, placed, tokens, path);
      const auto share = frobenius(residual(x)) / frobenius(x);
      length.residual += share.mean().item<double>() / static_cast<double>(paths.size());
      sum = sum + x;
    }
    if (sample.labels.defined()) {
      const auto logits = models::answer(network.spec, network.weights, sum, head_alone).logits();
      length.top1 =
          100 * (logits.argmax(-1) == sample.labels).to(torch::kFloat64).mean().item<double>();
    }
    found.push_back(length);
  }
  return found;
}

Json to_json(const std::vector<RerunLength>& lengths) {
  Json all = Json::array();
  for (const RerunLength& one : lengths) {
    all.push_back({{"length", one.length},
                   {"paths", one.paths},
                   {"residual", one.residual},
                   {"top1", one.top1 ? Json(*one.top1) : Json()}});
  }
  return all;
}

}  // namespace adjoin::analysis
