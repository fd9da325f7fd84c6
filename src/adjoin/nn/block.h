#pragma once

#include <string>

#include "adjoin/nn/residual.h"
#include "adjoin/spec/model_spec.h"

namespace adjoin::nn {

/// One pre-norm transformer block: x += drop_path(attention(norm1 x)); x += drop_path(mlp(norm2
/// x)), with the tensors under `placed.name`. Attention is inside windows where the block has one.
Stream block(const PlacedBlock& placed, double norm_eps, const Weights& weights, Stream x,
             const Context& context);

/// All blocks of a network in turn, each reported under its name, with the skips between them.
/// `before(i, x)` gives what enters block i; Swin merges patches there.
Stream blocks(const ModelSpec& spec, const Weights& weights, const torch::Tensor& x,
              const Context& context, const std::function<Stream(size_t, Stream)>& before = {});

}  // namespace adjoin::nn
