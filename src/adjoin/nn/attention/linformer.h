#pragma once

// Softmax attention to tokens summed up to a few (Linformer, Wang et al. 2020).

#include "adjoin/tensor/torch.h"

namespace adjoin::nn {

/// softmax(q (E^T k)^T scale) F^T v with E = `keys` and F = `values`, (N, k) or (H, N, k).
///
/// three times (.., H, N, d) -> (.., H, N, d)
torch::Tensor linformer_attention(const torch::Tensor& q, const torch::Tensor& k,
                                  const torch::Tensor& v, const torch::Tensor& keys,
                                  const torch::Tensor& values, double scale);

}  // namespace adjoin::nn
