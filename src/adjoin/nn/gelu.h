#pragma once

#include <string>

#include "adjoin/tensor/weights.h"

namespace adjoin::nn {

/// gelu(x W^T + b), the exact one, with the tensors under `prefix`.
///
/// (.., in) -> (.., out)
torch::Tensor linear_gelu(const Weights& weights, const std::string& prefix,
                          const torch::Tensor& x);

}  // namespace adjoin::nn
