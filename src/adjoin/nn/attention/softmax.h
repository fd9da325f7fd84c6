#pragma once

// Multi-head softmax attention on a fused q, k, v (Vaswani et al. 2017).

#include "adjoin/nn/context.h"

namespace adjoin::nn {

/// softmax(q k^T scale + bias) v, written out. `bias` broadcasts to (.., N, N) and may be
/// undefined.
///
/// three times (.., N, d) -> (.., N, d)
torch::Tensor plain_attention(const torch::Tensor& q, const torch::Tensor& k,
                              const torch::Tensor& v, double scale, const torch::Tensor& bias);

/// The same by the fastest way this device, type and LibTorch have. With windows, `bias` is
/// (W or 1, H, N, N).
///
/// three times (B, H, N, d) or (B, W, H, N, d) -> the same
torch::Tensor scaled_dot_product(const torch::Tensor& q, const torch::Tensor& k,
                                 const torch::Tensor& v, double scale, const torch::Tensor& bias,
                                 const Context& context);

/// Attention of all tokens to all tokens.
///
/// (B, N, 3 H d) -> (B, N, H d)
torch::Tensor softmax_attention(const torch::Tensor& qkv, int64_t heads, double scale,
                                const Context& context);

}  // namespace adjoin::nn
