#pragma once

// From tensors to the types that kernels are written for.

#include "adjoin/nn/kernels/bf16.h"
#include "adjoin/tensor/device.h"
#include "adjoin/tensor/recording.h"

namespace adjoin::nn {

/// Where a tensor's values begin; null for an undefined one.
template <class T>
T* data(const torch::Tensor& tensor) {
  return tensor.defined() ? static_cast<T*>(tensor.data_ptr()) : nullptr;
}

/// Whether kernels know values of one type beside sums and parameters of another. bfloat16 is only
/// known on a GPU.
inline bool is_known_type(torch::ScalarType value, torch::ScalarType wide) {
  if (wide == torch::kFloat64) return value == wide;
  return wide == torch::kFloat32 && (value == wide || (kHasCuda && value == torch::kBFloat16));
}

/// The type that products of a tensor are computed in.
inline torch::ScalarType product_type(const torch::Tensor& x) {
  return is_autocast_on(x.device()) ? torch::kBFloat16 : x.scalar_type();
}

/// Calls work<S, V>() with the types of sums and of values, for a type of values that is known.
template <class Work>
void for_types(torch::ScalarType value, Work work) {
  if (value == torch::kFloat64) {
    work.template operator()<double, double>();
  } else if (value == torch::kBFloat16) {
    work.template operator()<float, Bf16>();
  } else {
    work.template operator()<float, float>();
  }
}

}  // namespace adjoin::nn
