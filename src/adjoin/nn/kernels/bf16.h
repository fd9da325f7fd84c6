#pragma once

#include <cstdint>

namespace adjoin::nn {

/// Memory of a bfloat16, for sources that know neither LibTorch nor CUDA.
struct Bf16 {
  uint16_t bits;
};

}  // namespace adjoin::nn
