#pragma once

#include <string>

#include "adjoin/tensor/weights.h"

namespace adjoin::nn {

/// A convolution whose stride is its kernel, as one matrix product: patches in row-major order,
/// with `prefix`weight (E, C, P, P) and `prefix`bias.
///
/// (B, C, H, W) -> (B, H W / P^2, E)
torch::Tensor patch_embed(const Weights& weights, const std::string& prefix,
                          const torch::Tensor& image);

}  // namespace adjoin::nn
