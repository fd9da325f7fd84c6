#pragma once

#include <string>

#include "adjoin/nn/residual.h"

namespace adjoin::nn {

/// A branch: fc1, exact GELU, fc2 with the tensors under `prefix` ("blocks.0.mlp.").
/// How many hidden units there are is what the weights say: a sliced view is a smaller MLP.
///
/// (B, N, C) -> (B, N, C)
Branch mlp(const Weights& weights, const std::string& prefix, const torch::Tensor& x,
           const Context& context);

}  // namespace adjoin::nn
