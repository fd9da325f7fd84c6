#pragma once

// Softmax attention with learned positions of keys and values relative to the query (AutoFormer,
// Chen et al. 2021). A key's position is a vector for the rows between the two and one for the
// columns, so that scores are worked out per row and per column of the grid, not per pair.

#include <string>

#include "adjoin/nn/context.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::nn {

/// softmax((q (k + K)^T) scale) (v + V), where K and V, of every pair of tokens, are sums of rows
/// of the tables under `prefix` ("..attn."), see spec/relative.h.
///
/// three times (B, H, N, d) -> (B, H, N, d)
torch::Tensor relative_attention(const Weights& weights, const std::string& prefix,
                                 const torch::Tensor& q, const torch::Tensor& k,
                                 const torch::Tensor& v, double scale, int64_t distance,
                                 const Context& context);

}  // namespace adjoin::nn
