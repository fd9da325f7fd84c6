#pragma once

#include "adjoin/tensor/torch.h"

namespace adjoin {

/// The largest difference between two tensors.
inline double gap(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

}  // namespace adjoin
