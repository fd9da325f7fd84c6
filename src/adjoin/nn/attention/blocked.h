#pragma once

// Softmax attention on the CPU, a few heads at a time: scores, softmax and the product with v
// follow each other while they are still in the cache, and each core works on heads of its own.
// Plain calls of LibTorch's batched product run all heads through each step in turn, one
// multi-threaded product per head.

#include "adjoin/tensor/torch.h"

namespace adjoin::nn {

/// softmax(q k^T scale + bias) v, differentiable, twice too. `bias` (.., H, N, N) repeats over the
/// leading axes of q and may be undefined. float32 or float64, on the CPU, contiguous.
///
/// three times (.., H, N, d) -> (.., H, N, d)
torch::Tensor blocked_attention(const torch::Tensor& q, const torch::Tensor& k,
                                const torch::Tensor& v, double scale, const torch::Tensor& bias);

}  // namespace adjoin::nn
