#pragma once

// Attention among tokens that a hash puts together (Reformer, Kitaev et al. 2020). Queries are keys
// too: keys are queries of length one.

#include "adjoin/spec/mixer.h"
#include "adjoin/tensor/torch.h"

namespace adjoin::nn {

/// In every round tokens are sorted by the bucket that `rotations` (rounds, d, buckets / 2) send
/// them to, cut into chunks, and see those of their own chunk and the one before it. The rounds are
/// weighted by how much a token found in them. The last chunk is filled up with tokens that nobody
/// sees.
///
/// twice (B, H, N, d) -> (B, H, N, d)
torch::Tensor lsh_attention(const torch::Tensor& q, const torch::Tensor& v,
                            const torch::Tensor& rotations, const Mixer& mixer, double scale);

}  // namespace adjoin::nn
