#pragma once

// What must hold for every network, named or random.

#include <gtest/gtest.h>

#include "adjoin/cost/cost.h"
#include "adjoin/models/forward.h"
#include "adjoin/models/init.h"
#include "support/mac_counter.h"

namespace adjoin::models {

inline torch::Tensor images_for(const ModelSpec& spec, int64_t batch) {
  return torch::randn({batch, spec.in_chans, spec.img_size, spec.img_size});
}

/// Executed MACs equal ops(spec), counted parameters equal `cost`, logits have their shape and are
/// finite, and every trained tensor, and no fixed one, gets a gradient, of its shape and finite.
inline void expect_laws(const ModelSpec& spec) {
  Weights weights = init(spec, 0);
  const Cost counted = cost(spec);
  int64_t stored = 0, trained = 0;
  require_gradients(spec, weights);
  for (const auto& [name, tensor] : weights) {
    stored += tensor.numel();
    if (tensor.requires_grad()) trained += tensor.numel();
  }
  EXPECT_EQ(stored, counted.params);
  EXPECT_EQ(trained, counted.params_trainable);

  torch::Tensor logits;
  {
    const MacCounter counter;
    logits = forward(spec, weights, images_for(spec, 1)).logits();
    EXPECT_EQ(counter.macs(), counted.macs.total());
  }
  ASSERT_EQ(logits.sizes(), (std::vector<int64_t>{1, spec.num_classes}));
  EXPECT_TRUE(logits.isfinite().all().item<bool>());
  logits.square().sum().backward();
  for (const TensorInfo& info : tensors(spec)) {
    const auto grad = weights.at(info.name).grad();
    EXPECT_EQ(grad.defined(), info.is_trained) << info.name;
    if (!grad.defined()) continue;
    EXPECT_EQ(grad.sizes(), info.shape()) << info.name;
    EXPECT_TRUE(grad.isfinite().all().item<bool>()) << info.name;
  }
}

}  // namespace adjoin::models
