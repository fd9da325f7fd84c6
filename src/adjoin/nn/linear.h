#pragma once

// The two affine layers everything is made of.

#include <string>

#include "adjoin/tensor/weights.h"

namespace adjoin::nn {

/// x W^T + b with `prefix`weight (out, in) and, where there is one, `prefix`bias. A slice of
/// grouped rows or columns may come with the groups as an axis of their own, (groups, n, in) or
/// (out, groups, n): a view of a large network's qkv has no other form.
///
/// (.., in) -> (.., out)
torch::Tensor linear(const Weights& weights, const std::string& prefix, const torch::Tensor& x);

/// LayerNorm over the last axis with `prefix`weight and `prefix`bias.
torch::Tensor layer_norm(const Weights& weights, const std::string& prefix, const torch::Tensor& x,
                         double eps);

}  // namespace adjoin::nn
