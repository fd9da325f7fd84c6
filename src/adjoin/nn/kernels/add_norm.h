#pragma once

// Residual sum and layer norm in one pass over memory. Knows no LibTorch: one source for every kind
// of processor, one for GPUs. Matrices are row-major and contiguous.

#include <cstdint>

#include "adjoin/nn/kernels/bf16.h"

namespace adjoin::nn {

struct RowShape {
  int64_t rows = 0;
  int64_t width = 0;
  int64_t tokens = 0;  ///< rows of one image
};

/// sum = x + scale (branch + branch_bias); norm = layer norm of sum. S is the type of the stream, V
/// that of branch and norm.
template <class S, class V = S>
struct AddNorm {
  const S* x;             ///< (rows, width), as branch, sum and norm
  const V* branch;        ///< null: nothing is added, and `sum` is not written
  const S* branch_bias;   ///< (width), or null
  const S* branch_scale;  ///< (images), or null
  const int32_t*
      branch_place;  ///< (tokens): the row of an image's branch that is a token's, or null
  const S* weight;   ///< (width), as bias
  const S* bias;
  const int32_t* norm_place;  ///< (tokens): the row of an image's norm that is a token's, or null
  double eps;
  S* sum;
  V* norm;
  S* statistics;  ///< (rows, 2): mean and 1 / deviation
};

template <class S, class V = S>
struct AddNormBackward {
  const S* sum;
  const S* statistics;
  const S* branch_scale;
  const int32_t* branch_place;
  const S* weight;
  const int32_t* norm_place;
  const V* grad_norm;
  const S* grad_sum;  ///< what reaches the sum by other ways, or null
  S* grad_x;
  V* grad_branch;  ///< null without a branch
  S* parts;        ///< (parts, 3, width): sums over rows, for weight, bias and branch_bias
};

/// Rows begin to end - 1. The gradients of weight, bias and branch_bias are added to `parts`.
void add_norm(const AddNorm<float>& task, const RowShape& shape, int64_t begin, int64_t end);
void add_norm(const AddNorm<double>& task, const RowShape& shape, int64_t begin, int64_t end);
void add_norm_backward(const AddNormBackward<float>& task, const RowShape& shape, int64_t begin,
                       int64_t end);
void add_norm_backward(const AddNormBackward<double>& task, const RowShape& shape, int64_t begin,
                       int64_t end);

/// On a GPU, in a stream of CUDA's. Widths up to kMostWidth.
inline constexpr int64_t kMostWidth = 1024;
template <class S, class V>
void add_norm_on_gpu(const AddNorm<S, V>& task, const RowShape& shape, void* stream);

/// How many `parts` the backward pass of a GPU fills.
int64_t add_norm_parts(const RowShape& shape);

/// `grads` (3, width) are the sums of the parts.
template <class S, class V>
void add_norm_backward_on_gpu(const AddNormBackward<S, V>& task, const RowShape& shape, S* grads,
                              void* stream);

}  // namespace adjoin::nn
