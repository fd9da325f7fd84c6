#pragma once

// From a fused q, k, v to heads.

#include <string>
#include <vector>

#include "adjoin/tensor/weights.h"

namespace adjoin::nn {

/// The heads of a fused qkv whose last axis is [q; k; v], each head-major; or of [q; v], two parts.
///
/// (B, N, 3 H d) -> three times (B, H, N, d), on the CPU contiguous
std::vector<torch::Tensor> split_heads(const torch::Tensor& qkv, int64_t heads, int64_t parts = 3);

/// The heads of the linear layer under `prefix` ("..attn.qkv.").
///
/// (B, N, C) -> three times (B, H, N, d)
std::vector<torch::Tensor> project_heads(const Weights& weights, const std::string& prefix,
                                         const torch::Tensor& x, int64_t heads, int64_t parts = 3);

}  // namespace adjoin::nn
