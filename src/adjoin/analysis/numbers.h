#pragma once

#include <vector>

#include "adjoin/tensor/torch.h"

namespace adjoin::analysis {

/// All values of a tensor, row by row.
inline std::vector<double> numbers(const torch::Tensor& x) {
  const auto flat = x.to(torch::kCPU, torch::kFloat64).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

}  // namespace adjoin::analysis
