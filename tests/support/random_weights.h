#pragma once

#include "adjoin/spec/tensors.h"
#include "adjoin/tensor/weights.h"

namespace adjoin {

/// Every tensor drawn from a normal distribution, so that no slice equals another by chance.
inline Weights random_weights(const ModelSpec& spec, torch::ScalarType type = torch::kFloat32) {
  Weights weights;
  for (const TensorInfo& info : tensors(spec)) {
    weights.set(info.name, (torch::randn(info.shape(), torch::kFloat64) * 0.3).to(type));
  }
  return weights;
}

}  // namespace adjoin
