#include "adjoin/analysis/paths.h"

#include "adjoin/analysis/token_rank.h"
#include "adjoin/core/rng.h"

namespace adjoin::analysis {
namespace {

/// [layers passed][length]: ways from the input.
std::vector<std::vector<double>> ways(const AttentionStack& stack) {
  const size_t count = stack.layers.size();
  std::vector<std::vector<double>> table(count + 1, std::vector<double>(count + 1, 0));
  table[0][0] = 1;
  for (size_t l = 1; l <= count; ++l) {
    const StackLayer& layer = stack.layers[l - 1];
    for (size_t k = 0; k <= l; ++k) {
      if (layer.skip) table[l][k] += table[l - 1][k];
      if (k > 0) table[l][k] += static_cast<double>(layer.heads.size()) * table[l - 1][k - 1];
    }
  }
  return table;
}

/// Every path of a length, in an order.
void visit_paths(const AttentionStack& stack, size_t layer, int64_t left, Path& path,
                 std::vector<Path>& found) {
  if (layer == stack.layers.size()) {
    if (left == 0) found.push_back(path);
    return;
  }
  if (left > static_cast<int64_t>(stack.layers.size() - layer)) return;
  if (stack.layers[layer].skip) {
    path[layer] = kBeside;
    visit_paths(stack, layer + 1, left, path, found);
  }
  for (size_t h = 0; left > 0 && h < stack.layers[layer].heads.size(); ++h) {
    path[layer] = static_cast<int64_t>(h);
    visit_paths(stack, layer + 1, left - 1, path, found);
  }
}

double norm_of(const torch::Tensor& x) { return frobenius(x).item<double>(); }

/// |res X| / |X|; 0 of nothing.
double residual_share(const torch::Tensor& x) {
  const double whole = norm_of(x);
  return whole > 0 ? norm_of(residual(x)) / whole : 0;
}

}  // namespace

std::vector<double> count_paths(const AttentionStack& stack) { return ways(stack).back(); }

torch::Tensor path_value(const AttentionStack& stack, const Path& path) {
  auto x = stack.input;
  for (size_t l = 0; l < path.size(); ++l) {
    const StackLayer& layer = stack.layers[l];
    x = path[l] == kBeside ? layer.skip.value()(x) : layer.heads[static_cast<size_t>(path[l])](x);
  }
  return x;
}

PathSplit split_by_length(const AttentionStack& stack) {
  const auto zero = torch::zeros_like(stack.input);
  PathSplit split{{stack.input}, zero};
  for (const StackLayer& layer : stack.layers) {
    const auto through = [&](const torch::Tensor& x) {
      auto sum = torch::zeros_like(x);
      for (const TokenMap& head : layer.heads) sum = sum + head(x);
      return sum;
    };
    const auto beside = [&](const torch::Tensor& x) {
      return layer.skip ? (*layer.skip)(x) : zero;
    };
    std::vector<torch::Tensor> next;
    for (size_t k = 0; k <= split.lengths.size(); ++k) {
      auto sum = zero;
      if (k < split.lengths.size()) sum = sum + beside(split.lengths[k]);
      if (k > 0) sum = sum + through(split.lengths[k - 1]);
      next.push_back(sum);
    }
    split.constant = beside(split.constant) + through(split.constant) + layer.constant;
    split.lengths = std::move(next);
  }
  return split;
}

std::vector<Path> some_paths(const AttentionStack& stack, int64_t length, int64_t most,
                             uint64_t seed) {
  const auto table = ways(stack);
  const size_t count = stack.layers.size();
  const double all = table[count][static_cast<size_t>(length)];
  std::vector<Path> found;
  if (all <= static_cast<double>(most)) {
    Path path(count, kBeside);
    if (all > 0) visit_paths(stack, 0, length, path, found);
    return found;
  }
  Rng rng(stream_key(seed, {static_cast<uint64_t>(length)}));
  for (int64_t i = 0; i < most; ++i) {  // from the last layer back, by the ways that lead there
    Path path(count, kBeside);
    auto left = static_cast<size_t>(length);
    for (size_t l = count; l > 0; --l) {
      const double beside = stack.layers[l - 1].skip ? table[l - 1][left] : 0;
      if (rng.uniform() * table[l][left] < beside) continue;
      path[l - 1] = rng.below(std::ssize(stack.layers[l - 1].heads));
      --left;
    }
    found.push_back(std::move(path));
  }
  return found;
}

Json paths_json(const AttentionStack& stack, const PathOptions& options) {
  const torch::NoGradGuard no_grad;
  const PathSplit split = split_by_length(stack);
  const std::vector<double> counts = count_paths(stack);
  double norms = 0;
  auto sum = split.constant;
  for (const auto& part : split.lengths) {
    norms += norm_of(part);
    sum = sum + part;
  }
  Json lengths = Json::array();
  for (size_t k = 0; k < split.lengths.size(); ++k) {
    if (counts[k] == 0) continue;
    const auto paths = some_paths(stack, static_cast<int64_t>(k), options.sampled, options.seed);
    double single = 0;
    for (const Path& path : paths) single += residual_share(path_value(stack, path));
    lengths.push_back({{"length", k},
                       {"paths", counts[k]},
                       {"norm", norm_of(split.lengths[k])},
                       {"residual", residual_share(split.lengths[k])},
                       {"share", norms > 0 ? norm_of(split.lengths[k]) / norms : 0},
                       {"sampled",
                        {{"paths", paths.size()},
                         {"residual", single / static_cast<double>(paths.size())},
                         {"is_all", counts[k] <= static_cast<double>(options.sampled)}}}});
  }
  Json heads = Json::array();
  for (const StackLayer& layer : stack.layers) heads.push_back(layer.heads.size());
  const double scale = std::max(stack.output.abs().max().item<double>(), 1e-300);
  return {{"layers", stack.layers.size()},
          {"heads", heads},
          {"sum_error", (sum - stack.output).abs().max().item<double>() / scale},
          {"constant_norm", norm_of(split.constant)},
          {"lengths", lengths},
          {"notes", stack.notes}};
}

}  // namespace adjoin::analysis
