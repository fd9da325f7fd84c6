#pragma once

// Augmented shortcuts (Tang et al. 2021).

#include <string>

#include "adjoin/spec/shortcut.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::nn {

/// x times matrices of circulant blocks, by the Fourier transform. `weight` (T, b, b, m) holds the
/// first columns of the blocks of T matrices: entry (r, s) of block (i, j) is c_ij[(r - s) mod m].
///
/// (.., b m) -> (.., T b m)
torch::Tensor circulant_product(const torch::Tensor& x, const torch::Tensor& weight);

/// The same matrices written out, as a linear layer has them: (T b m, b m).
torch::Tensor circulant_matrix(const torch::Tensor& weight);

/// The sum of all branches, GELU(x W^T + b), with the tensors under `prefix`.
///
/// (B, N, C) -> (B, N, C)
torch::Tensor shortcut_branches(const Weights& weights, const std::string& prefix,
                                const Shortcut& shortcut, const torch::Tensor& x);

}  // namespace adjoin::nn
