#pragma once

// Attention without softmax: keys and values are summed up once, and every query reads the sums
// (Katharopoulos et al. 2020).

#include "adjoin/spec/mixer.h"
#include "adjoin/tensor/torch.h"

namespace adjoin::nn {

/// f(q) S / (f(q) z) with S = sum f(k)^T v, z = sum f(k), f = elu + 1, over all tokens or over
/// those up to the query's own: by products of matrices (kLinear), or token by token (kRecurrent).
///
/// three times (.., N, d) -> (.., N, d)
torch::Tensor linear_attention(const torch::Tensor& q, const torch::Tensor& k,
                               const torch::Tensor& v, const Mixer& mixer);

}  // namespace adjoin::nn
