#pragma once

// An ONNX file of ours read back and computed with LibTorch: what is exported is what was meant.

#include <string>

#include "adjoin/tensor/torch.h"

namespace adjoin::models {

/// The output of the graph in a file, for its one input. Knows the operators that io/onnx writes,
/// and throws Error(kData) on any other and on a file that is damaged.
torch::Tensor run_onnx(const std::string& path, const torch::Tensor& input);

}  // namespace adjoin::models
