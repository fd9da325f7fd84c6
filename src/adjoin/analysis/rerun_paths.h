#pragma once

// Paths the other way: not as parts of a sum, but each as a network of its own, whose attention
// looks at what the path itself has made so far. This is what the experiments of Dong, Cordonnier
// and Loukas (2021) do.

#include "adjoin/analysis/paths.h"

namespace adjoin::analysis {

struct RerunLength {
  int64_t length = 0;
  int64_t paths = 0;           ///< that were drawn
  double residual = 0;         ///< |res X| / |X| of a path's tokens, mean of paths and images
  std::optional<double> top1;  ///< percent, of the sum of the paths through norm and head
};

/// Every block of a path is one head that reads through the block's norm where one stands before
/// it, the whole projection's bias and no skip, then a layer norm without weights; in float64.
/// Paths are those `some_paths` gives for the stack, which the network must be that of.
std::vector<RerunLength> rerun_paths(const Network& network, const AttentionStack& stack,
                                     const Sample& sample, const PathOptions& options);

Json to_json(const std::vector<RerunLength>& lengths);

}  // namespace adjoin::analysis
