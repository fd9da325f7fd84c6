#pragma once

#include <string>

#include "adjoin/nn/residual.h"
#include "adjoin/spec/model_spec.h"

namespace adjoin::nn {

/// The two halves of a pre-norm transformer block, x += drop_path(attention(norm1 x)) and
/// x += drop_path(mlp(norm2 x)), with the tensors under `placed.name`. Attention is inside windows
/// where the block has one.
Stream attend(const PlacedBlock& placed, double norm_eps, const Weights& weights, Stream x,
              const Context& context);
Stream feed_forward(const PlacedBlock& placed, double norm_eps, const Weights& weights, Stream x,
                    const Context& context);

/// Both: one block.
Stream block(const PlacedBlock& placed, double norm_eps, const Weights& weights, Stream x,
             const Context& context);

/// All blocks of a network in turn, each reported under its name, with the skips between them.
/// `before(i, x)` gives what enters block i; Swin merges patches there. `context.block` may compute
/// them in another way.
Stream blocks(const ModelSpec& spec, const Weights& weights, const torch::Tensor& x,
              const Context& context, const std::function<Stream(size_t, Stream)>& before = {});

}  // namespace adjoin::nn
