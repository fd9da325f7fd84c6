#pragma once

#include <gtest/gtest.h>

#include "adjoin/tensor/torch.h"

namespace adjoin {

/// Base fixture: seeds before the members of the derived fixture are built.
class SeededTest : public testing::Test {
 protected:
  SeededTest() { torch::manual_seed(0); }
};

inline torch::Tensor randn64(at::IntArrayRef shape) { return torch::randn(shape, torch::kFloat64); }

}  // namespace adjoin
