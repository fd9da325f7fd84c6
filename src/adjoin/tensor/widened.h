#pragma once

#include "adjoin/tensor/torch.h"

namespace adjoin {

/// float64 stays; everything narrower is computed in float32.
inline torch::Tensor widened(const torch::Tensor& x) {
  return x.scalar_type() == torch::kFloat64 ? x : x.to(torch::kFloat32);
}

}  // namespace adjoin
