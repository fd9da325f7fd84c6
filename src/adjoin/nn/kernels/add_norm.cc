#include "adjoin/nn/kernels/add_norm.h"

#include <cmath>

#include "adjoin/nn/kernels/wide.h"

namespace adjoin::nn {
namespace {

/// Where token `row` of all images stands when each image has its tokens in another order.
ADJOIN_INLINE int64_t placed(const int32_t* place, int64_t row, const RowShape& shape) {
  if (place == nullptr) return row;
  const int64_t token = row % shape.tokens;
  return row - token + place[token];
}

template <class T>
ADJOIN_INLINE T scale_of(const T* scale, int64_t row, const RowShape& shape) {
  return scale == nullptr ? T(1) : scale[row / shape.tokens];
}

template <class T>
ADJOIN_INLINE void forward(const AddNorm<T>& task, const RowShape& shape, int64_t begin,
                           int64_t end) {
  const int64_t n = shape.width;
  const T* __restrict weight = task.weight;
  const T* __restrict bias = task.bias;
  for (int64_t row = begin; row < end; ++row) {
    const T* __restrict sum = task.x + row * n;
    T total = 0;
    if (task.branch == nullptr) {
#pragma omp simd reduction(+ : total)
      for (int64_t j = 0; j < n; ++j) total += sum[j];
    } else {
      const T* __restrict x = task.x + row * n;
      const T* __restrict branch = task.branch + placed(task.branch_place, row, shape) * n;
      const T* __restrict branch_bias = task.branch_bias;
      T* __restrict out = task.sum + row * n;
      const T scale = scale_of(task.branch_scale, row, shape);
      if (branch_bias == nullptr) {
#pragma omp simd reduction(+ : total)
        for (int64_t j = 0; j < n; ++j) {
          out[j] = x[j] + scale * branch[j];
          total += out[j];
        }
      } else {
#pragma omp simd reduction(+ : total)
        for (int64_t j = 0; j < n; ++j) {
          out[j] = x[j] + scale * (branch[j] + branch_bias[j]);
          total += out[j];
        }
      }
      sum = out;
    }
    const T mean = total / static_cast<T>(n);
    T squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int64_t j = 0; j < n; ++j) squares += (sum[j] - mean) * (sum[j] - mean);
    const T inverse = 1 / std::sqrt(squares / static_cast<T>(n) + static_cast<T>(task.eps));
    T* __restrict norm = task.norm + placed(task.norm_place, row, shape) * n;
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) norm[j] = (sum[j] - mean) * inverse * weight[j] + bias[j];
    task.statistics[2 * row] = mean;
    task.statistics[2 * row + 1] = inverse;
  }
}

template <class T>
ADJOIN_INLINE void backward(const AddNormBackward<T>& task, const RowShape& shape, int64_t begin,
                            int64_t end) {
  const int64_t n = shape.width;
  const T* __restrict weight = task.weight;
  T* __restrict of_weight = task.parts;
  T* __restrict of_bias = task.parts + n;
  T* __restrict of_branch_bias = task.parts + 2 * n;
  for (int64_t row = begin; row < end; ++row) {
    const T mean = task.statistics[2 * row];
    const T inverse = task.statistics[2 * row + 1];
    const T* __restrict sum = task.sum + row * n;
    const T* __restrict grad = task.grad_norm + placed(task.norm_place, row, shape) * n;
    T total = 0;
    T along = 0;  // in the direction of the normed row
#pragma omp simd reduction(+ : total, along)
    for (int64_t j = 0; j < n; ++j) {
      const T normed = (sum[j] - mean) * inverse;
      const T scaled = grad[j] * weight[j];
      total += scaled;
      along += scaled * normed;
      of_weight[j] += grad[j] * normed;
      of_bias[j] += grad[j];
    }
    total /= static_cast<T>(n);
    along /= static_cast<T>(n);
    T* __restrict grad_x = task.grad_x + row * n;
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) {
      const T normed = (sum[j] - mean) * inverse;
      grad_x[j] = inverse * (grad[j] * weight[j] - total - normed * along);
    }
    if (task.grad_sum != nullptr) {
      const T* __restrict grad_sum = task.grad_sum + row * n;
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) grad_x[j] += grad_sum[j];
    }
    if (task.grad_branch == nullptr) continue;
    T* __restrict grad_branch = task.grad_branch + placed(task.branch_place, row, shape) * n;
    const T scale = scale_of(task.branch_scale, row, shape);
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) {
      grad_branch[j] = scale * grad_x[j];
      of_branch_bias[j] += grad_branch[j];
    }
  }
}

}  // namespace

ADJOIN_WIDE void add_norm(const AddNorm<float>& task, const RowShape& shape, int64_t begin,
                          int64_t end) {
  forward(task, shape, begin, end);
}

ADJOIN_WIDE void add_norm(const AddNorm<double>& task, const RowShape& shape, int64_t begin,
                          int64_t end) {
  forward(task, shape, begin, end);
}

ADJOIN_WIDE void add_norm_backward(const AddNormBackward<float>& task, const RowShape& shape,
                                   int64_t begin, int64_t end) {
  backward(task, shape, begin, end);
}

ADJOIN_WIDE void add_norm_backward(const AddNormBackward<double>& task, const RowShape& shape,
                                   int64_t begin, int64_t end) {
  backward(task, shape, begin, end);
}

}  // namespace adjoin::nn
