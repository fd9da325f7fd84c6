#pragma once

#include <string>

#include "adjoin/nn/context.h"
#include "adjoin/spec/model_spec.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::nn {

/// One pre-norm transformer block: x += drop_path(attention(norm1 x)); x += drop_path(mlp(norm2
/// x)), with the tensors under `placed.name`. Attention is inside windows where the block has one.
///
/// (B, N, C) -> (B, N, C)
torch::Tensor block(const PlacedBlock& placed, double norm_eps, const Weights& weights,
                    const torch::Tensor& x, const Context& context);

/// All blocks of a network in turn, each reported under its name, with the skips between them.
/// `before(i, x)` gives what enters block i; Swin merges patches there.
torch::Tensor blocks(const ModelSpec& spec, const Weights& weights, torch::Tensor x,
                     const Context& context,
                     const std::function<torch::Tensor(size_t, torch::Tensor)>& before = {});

}  // namespace adjoin::nn
