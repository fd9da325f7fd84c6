#pragma once

#include "adjoin/analysis/laws.h"

namespace adjoin::analysis {

/// Random projections and singular values of the attention matrices (B, [W,] H, N, N) of a block,
/// of the first image and window. `trials` projections and vectors per head.
LowRankRow low_rank(const std::string& layer, const torch::Tensor& attention, double epsilon,
                    int64_t trials, uint64_t seed);

/// ceil(5 ln n / (epsilon^2 - epsilon^3)).
int64_t projected_tokens(int64_t tokens, double epsilon);

}  // namespace adjoin::analysis
