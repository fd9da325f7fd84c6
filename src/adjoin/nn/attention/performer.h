#pragma once

// T2T-ViT's performer: softmax attention approximated by positive random features (Choromanski et
// al. 2021; Yuan et al. 2021), linear in the number of tokens.

#include "adjoin/tensor/torch.h"

namespace adjoin::nn {

/// exp(w x - |x|^2 / 2) / sqrt(m) with random features w (m, d).
///
/// (B, N, d) -> (B, N, m)
torch::Tensor positive_features(const torch::Tensor& x, const torch::Tensor& w);

/// f(q) (f(k)^T v) / (f(q) . sum f(k) + eps), f the positive features; at least in float32.
///
/// three times (B, N, d) -> (B, N, d)
torch::Tensor performer(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                        const torch::Tensor& w, double eps = 1e-8);

}  // namespace adjoin::nn
