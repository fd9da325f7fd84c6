#pragma once

#include "adjoin/spec/tensors.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::models {

/// Start values of a network by the init rules of tensors(spec), float32 on the CPU. Every tensor
/// is drawn from its own stream, a function of seed and name: adding a block leaves the others as
/// they were.
Weights init(const ModelSpec& spec, uint64_t seed);

/// One tensor of it.
torch::Tensor init_tensor(const TensorInfo& info, uint64_t seed);

/// Marks what training changes as requiring a gradient; the tensors themselves are shared.
void require_gradients(const ModelSpec& spec, Weights& weights);

}  // namespace adjoin::models
