#pragma once

// What each token takes of each other token, as a matrix, for every mixer of the spec: a head's
// output is linear in its values, so the matrix is what it makes of unit vectors.

#include "adjoin/nn/attention/mix.h"

namespace adjoin::analysis {

struct AttentionMap {
  torch::Tensor weights;  ///< (B, [W,] H, N, N): row i is what token i takes of all
  torch::Tensor offset;   ///< (B, [W,] H, N, d): what a head adds whatever the values; mixer
                          ///< `relative` alone, else undefined
};

AttentionMap attention_map(const PlacedBlock& placed, const Weights& weights,
                           const nn::Heads& heads);

/// The mean entropy of a row in nats, of absolute values that sum to 1: those of linformer may be
/// negative. Over images, windows and rows.
///
/// (B, [W,] H, N, N) -> (H)
torch::Tensor attention_entropy(const torch::Tensor& weights);

/// Singular values of each head's matrix, largest first, averaged over images and windows.
///
/// (B, [W,] H, N, N) -> (H, N)
torch::Tensor attention_spectrum(const torch::Tensor& weights);

}  // namespace adjoin::analysis
