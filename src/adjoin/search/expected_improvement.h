#pragma once

// How much better than the best so far a network may be expected to be.

#include "adjoin/tensor/torch.h"

namespace adjoin::search {

/// E max(0, f - best) of f normal with these means and deviations, all (m), float64.
torch::Tensor expected_improvement(const torch::Tensor& mean, const torch::Tensor& deviation,
                                   double best);

/// Its logarithm, which still tells points apart where the improvement itself is rounded to 0
/// (Ament et al. 2023).
torch::Tensor log_expected_improvement(const torch::Tensor& mean, const torch::Tensor& deviation,
                                       double best);

}  // namespace adjoin::search
