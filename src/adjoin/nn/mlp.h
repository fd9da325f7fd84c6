#pragma once

#include <string>

#include "adjoin/nn/context.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::nn {

/// fc1, exact GELU, fc2 with the tensors under `prefix` ("blocks.0.mlp.").
/// How many hidden units there are is what the weights say: a sliced view is a smaller MLP.
///
/// (B, N, C) -> (B, N, C)
torch::Tensor mlp(const Weights& weights, const std::string& prefix, const torch::Tensor& x,
                  const Context& context);

}  // namespace adjoin::nn
