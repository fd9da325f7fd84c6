#include "adjoin/nn/attention/small_heads.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "adjoin/nn/kernels/wide.h"

namespace adjoin::nn {
namespace {

constexpr int64_t kMostTokens = 32;
constexpr int64_t kMostDim = 64;

/// (N, d) -> (d, 32), so that all tokens of a channel are neighbours; zeros fill the rest.
template <class T>
ADJOIN_INLINE void transpose(const T* from, const HeadShape& shape, T* to) {
  for (int64_t c = 0; c < shape.dim; ++c) {
    for (int64_t j = 0; j < shape.tokens; ++j) to[c * kMostTokens + j] = from[j * shape.dim + c];
    for (int64_t j = shape.tokens; j < kMostTokens; ++j) to[c * kMostTokens + j] = 0;
  }
}

/// row[j] += sum over c of vector[c] columns[c][j], for the first `width` of j.
template <class T>
ADJOIN_INLINE void add_products(const T* vector, const T* __restrict columns, int64_t dim,
                                int64_t width, T* __restrict row) {
  for (int64_t c = 0; c < dim; ++c) {
    const T factor = vector[c];
    const T* __restrict column = columns + c * kMostTokens;
    for (int64_t j = 0; j < width; ++j) row[j] += factor * column[j];
  }
}

template <class T>
ADJOIN_INLINE void softmax(T* row, int64_t count) {
  T most = row[0];
  for (int64_t j = 1; j < count; ++j) most = std::max(most, row[j]);
  T sum = 0;
  for (int64_t j = 0; j < count; ++j) {
    row[j] = std::exp(row[j] - most);
    sum += row[j];
  }
  const T inverse = 1 / sum;
  for (int64_t j = 0; j < count; ++j) row[j] *= inverse;
}

/// Tokens in whole vectors of eight.
constexpr int64_t padded(int64_t tokens) { return (tokens + 7) / 8 * 8; }

template <class T>
ADJOIN_INLINE void forward(const HeadForward<T>& head, const HeadShape& shape) {
  const int64_t n = shape.tokens;
  const int64_t d = shape.dim;
  std::array<T, kMostTokens * kMostDim> keys;
  transpose(head.k, shape, keys.data());
  const auto scale = static_cast<T>(shape.scale);
  for (int64_t i = 0; i < n; ++i) {
    std::array<T, kMostTokens> row{};
    add_products(head.q + i * d, keys.data(), d, padded(n), row.data());
    for (int64_t j = 0; j < n; ++j) row[j] *= scale;
    if (head.bias != nullptr) {
      for (int64_t j = 0; j < n; ++j) row[j] += head.bias[i * n + j];
    }
    softmax(row.data(), n);
    T* __restrict out = head.out + i * d;
    std::fill(out, out + d, T(0));
    for (int64_t j = 0; j < n; ++j) {
      const T* __restrict v = head.v + j * d;
      for (int64_t c = 0; c < d; ++c) out[c] += row[j] * v[c];
    }
    std::copy(row.data(), row.data() + n, head.probs + i * n);
  }
}

template <class T>
ADJOIN_INLINE void backward(const HeadBackward<T>& head, const HeadShape& shape) {
  const int64_t n = shape.tokens;
  const int64_t d = shape.dim;
  std::array<T, kMostTokens * kMostDim> values;
  transpose(head.v, shape, values.data());
  const auto scale = static_cast<T>(shape.scale);
  std::fill(head.grad_k, head.grad_k + n * d, T(0));
  std::fill(head.grad_v, head.grad_v + n * d, T(0));
  for (int64_t i = 0; i < n; ++i) {
    const T* __restrict probs = head.probs + i * n;
    const T* __restrict grad = head.grad_out + i * d;
    const T* __restrict q = head.q + i * d;
    std::array<T, kMostTokens> row{};  // gradient of the probabilities, then of the scores
    add_products(grad, values.data(), d, padded(n), row.data());
    T dot = 0;
    for (int64_t j = 0; j < n; ++j) dot += probs[j] * row[j];
    for (int64_t j = 0; j < n; ++j) row[j] = probs[j] * (row[j] - dot);
    if (head.grad_bias != nullptr) {
      for (int64_t j = 0; j < n; ++j) head.grad_bias[i * n + j] += row[j];
    }
    T* __restrict grad_q = head.grad_q + i * d;
    std::fill(grad_q, grad_q + d, T(0));
    for (int64_t j = 0; j < n; ++j) {
      const T score = row[j] * scale;
      const T* __restrict k = head.k + j * d;
      T* __restrict grad_k = head.grad_k + j * d;
      T* __restrict grad_v = head.grad_v + j * d;
      for (int64_t c = 0; c < d; ++c) {
        grad_q[c] += score * k[c];
        grad_k[c] += score * q[c];
        grad_v[c] += probs[j] * grad[c];
      }
    }
  }
}

}  // namespace

ADJOIN_WIDE void attend(const HeadForward<float>& head, const HeadShape& shape) {
  forward(head, shape);
}

ADJOIN_WIDE void attend(const HeadForward<double>& head, const HeadShape& shape) {
  forward(head, shape);
}

ADJOIN_WIDE void attend_backward(const HeadBackward<float>& head, const HeadShape& shape) {
  backward(head, shape);
}

ADJOIN_WIDE void attend_backward(const HeadBackward<double>& head, const HeadShape& shape) {
  backward(head, shape);
}

}  // namespace adjoin::nn
