#pragma once

// The two affine layers everything is made of.

#include <string>

#include "adjoin/nn/context.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::nn {

/// x W^T + b with `prefix`weight (out, in) and, where there is one, `prefix`bias. A slice of
/// grouped rows or columns may come with the groups as an axis of their own, (groups, n, in) or
/// (out, groups, n): a view of a large network's qkv has no other form.
///
/// (.., in) -> (.., out)
torch::Tensor linear(const Weights& weights, const std::string& prefix, const torch::Tensor& x);

/// x W^T alone, for what adds `prefix`bias on its way.
torch::Tensor product(const Weights& weights, const std::string& prefix, const torch::Tensor& x);

/// x W^T + b with the bias as a constant, for what computes its gradient on its way.
torch::Tensor linear_of_constant_bias(const Weights& weights, const std::string& prefix,
                                      const torch::Tensor& x);

/// A bias or the weights of a norm, as one axis; undefined where there is none.
torch::Tensor vector_of(const Weights& weights, const std::string& name);

/// LayerNorm over the last axis with `prefix`weight and `prefix`bias; x itself where the context
/// has no norms.
torch::Tensor layer_norm(const Weights& weights, const std::string& prefix, const torch::Tensor& x,
                         double eps, const Context& context);

}  // namespace adjoin::nn
