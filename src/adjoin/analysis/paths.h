#pragma once

// The output of a network's attention as a sum over paths, each through one head of some blocks and
// beside the others (Dong, Cordonnier and Loukas 2021; theorem 2.1 of the lecture notes on
// attention). A path's value is P_L .. P_1 X W_1 .. W_L: later matrices of attention stand on the
// left, which the notes have the other way round.

#include <cstdint>
#include <vector>

#include "adjoin/analysis/attention_stack.h"

namespace adjoin::analysis {

/// The head a path takes in every layer, or kBeside.
using Path = std::vector<int64_t>;
inline constexpr int64_t kBeside = -1;

/// Numbers of paths by length, 0 to the number of layers. They outgrow integers.
std::vector<double> count_paths(const AttentionStack& stack);

/// (N, C)
torch::Tensor path_value(const AttentionStack& stack, const Path& path);

/// Sums of all paths by length, without visiting them: O(layers^2) products. With `constant` they
/// sum up to the output.
struct PathSplit {
  std::vector<torch::Tensor> lengths;  ///< (N, C) each
  torch::Tensor constant;              ///< (N, C): what biases add on their way
};
PathSplit split_by_length(const AttentionStack& stack);

/// All paths of a length where there are at most `most`, else so many drawn, each as likely as any
/// other.
std::vector<Path> some_paths(const AttentionStack& stack, int64_t length, int64_t most,
                             uint64_t seed);

struct PathOptions {
  int64_t sampled = 32;  ///< single paths looked at, of every length
  uint64_t seed = 0;
};

/// {"layers","heads","sum_error","lengths":[{"length","paths","norm","residual","share",
/// "sampled":{"paths","residual","is_all"}}],"notes"}: of one image.
Json paths_json(const AttentionStack& stack, const PathOptions& options);

}  // namespace adjoin::analysis
