#pragma once

// The inner loop of AdamW on a CPU: one pass over memory where a chain of tensor operations makes
// about ten. Knows no LibTorch, so that it can be compiled for several kinds of processor.

#include <cstdint>

namespace adjoin::train {

struct AdamWStep {
  double decay;  ///< what is left of a value: 1 - lr x weight decay
  double beta1;
  double beta2;
  double step_size;  ///< lr / (1 - beta1^t)
  double root;       ///< sqrt(1 - beta2^t)
  double eps;
};

template <class T>
struct AdamWVectors {
  T* values;
  const T* gradients;
  T* first;
  T* second;
};

/// Updates entries begin to end - 1.
void adamw(const AdamWVectors<float>& vectors, int64_t begin, int64_t end, const AdamWStep& step);
void adamw(const AdamWVectors<double>& vectors, int64_t begin, int64_t end, const AdamWStep& step);

}  // namespace adjoin::train
