#pragma once

// What every mixer of a spec computes.

#include <string>

#include "adjoin/nn/context.h"
#include "adjoin/spec/model_spec.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::nn {

/// The block's tokens see each other, by its mixer and inside its windows where it has them: from
/// what the block reads to what its heads give, with the tensors under `placed.name`.
///
/// (B, N, C) -> (B, N, H d), tokens in the order they come in
torch::Tensor mix(const PlacedBlock& placed, const Weights& weights, const torch::Tensor& x,
                  const Context& context);

}  // namespace adjoin::nn
