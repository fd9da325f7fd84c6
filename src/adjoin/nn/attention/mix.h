#pragma once

// What every mixer of a spec computes.

#include <string>

#include "adjoin/nn/context.h"
#include "adjoin/spec/model_spec.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::nn {

/// What the heads of a block ask, are asked for, and hand on.
struct Heads {
  torch::Tensor q;  ///< (B, [W,] H, N, d), as k and v; W windows, where the block has them
  torch::Tensor k;  ///< undefined in lsh, whose keys are its queries
  torch::Tensor v;
};

/// The heads of what a block reads, with the tensors under `placed.name`.
///
/// (B, N, C)
Heads heads_of(const PlacedBlock& placed, const Weights& weights, const torch::Tensor& x);

/// What each head gives, by the block's mixer: linear in v but for what `relative` adds to it.
///
/// (B, [W,] H, N, d)
torch::Tensor mixed(const PlacedBlock& placed, const Weights& weights, const Heads& heads,
                    const Context& context);

/// Both: the block's tokens see each other, inside its windows where it has them.
///
/// (B, N, C) -> (B, N, H d), tokens in the order they come in
torch::Tensor mix(const PlacedBlock& placed, const Weights& weights, const torch::Tensor& x,
                  const Context& context);

}  // namespace adjoin::nn
