#pragma once

// Softmax attention to some keys only (Child et al. 2019), computed as dense blocks: what the
// pattern leaves out is not multiplied, but for the edges of the blocks.

#include "adjoin/nn/context.h"
#include "adjoin/spec/mixer.h"

namespace adjoin::nn {

/// The pattern of spec/sparse.h.
///
/// three times (B, H, N, d) -> (B, H, N, d)
torch::Tensor sparse_attention(const torch::Tensor& q, const torch::Tensor& k,
                               const torch::Tensor& v, const Mixer& mixer, double scale,
                               const Context& context);

}  // namespace adjoin::nn
