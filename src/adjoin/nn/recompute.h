#pragma once

// Activations traded for time (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"):
// a function keeps its input alone, and is computed a second time when its gradient is needed.

#include <functional>

#include "adjoin/nn/context.h"

namespace adjoin::nn {

/// f(x), with the gradient of a plain call, also for the parameters that f reads. Random numbers
/// are those of the first time. `f` and what it refers to must live until backward has run.
torch::Tensor recomputed(std::function<torch::Tensor(const torch::Tensor&)> f,
                         const torch::Tensor& x, const Context& context);

}  // namespace adjoin::nn
