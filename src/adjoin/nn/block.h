#pragma once

#include <string>

#include "adjoin/nn/residual.h"
#include "adjoin/spec/model_spec.h"

namespace adjoin::nn {

/// The two halves of a transformer block, last(x + drop_path(after(attention(before x)))) and the
/// same with its MLP, with the tensors under `placed.name`. Which of the norms there are is what
/// spec/norms.h says; shortcuts are added where the block has them. Attention is inside windows
/// where the block has one.
Stream attend(const PlacedBlock& placed, double norm_eps, const Weights& weights, Stream x,
              const Context& context);
Stream feed_forward(const PlacedBlock& placed, double norm_eps, const Weights& weights, Stream x,
                    const Context& context);

/// What the attention of the block reads of x, after its norm where it has one before it, its
/// tokens window by window.
torch::Tensor read_by_attention(const PlacedBlock& placed, double norm_eps, const Weights& weights,
                                const torch::Tensor& x, const Context& context);

/// What the MLP of the block reads of the stream, after its norm where it has one before it.
torch::Tensor read_by_mlp(const PlacedBlock& placed, double norm_eps, const Weights& weights,
                          Stream& x, const Context& context);

/// Both: one block.
Stream block(const PlacedBlock& placed, double norm_eps, const Weights& weights, Stream x,
             const Context& context);

/// All blocks of a network in turn, each reported under its name, with the skips between them.
/// `before(i, x)` gives what enters block i; Swin merges patches there. `context.block` may compute
/// them in another way.
Stream blocks(const ModelSpec& spec, const Weights& weights, const torch::Tensor& x,
              const Context& context, const std::function<Stream(size_t, Stream)>& before = {});

}  // namespace adjoin::nn
