#pragma once

// Attention of heads so small that a call of a matrix library costs more than the product: plain
// loops over one head, which the compiler turns into vector instructions. Knows no LibTorch, so
// that it can be compiled for several kinds of processor.

#include <cstdint>

namespace adjoin::nn {

struct HeadShape {
  int64_t tokens = 0;  ///< N
  int64_t dim = 0;     ///< d
  double scale = 1;
};

/// Whether a head is faster this way than by three products of matrices.
constexpr bool is_small_head(int64_t tokens, int64_t dim) {
  return tokens <= 32 && dim <= 64 && tokens * tokens * dim <= 8192;
}

/// Where the matrices of one head begin; each is row-major and contiguous.
template <class T>
struct HeadForward {
  const T* q;  ///< (N, d), as k, v and out
  const T* k;
  const T* v;
  const T* bias;  ///< (N, N); null without one
  T* out;
  T* probs;  ///< (N, N): softmax(q k^T scale + bias)
};

void attend(const HeadForward<float>& head, const HeadShape& shape);
void attend(const HeadForward<double>& head, const HeadShape& shape);

template <class T>
struct HeadBackward {
  const T* q;
  const T* k;
  const T* v;
  const T* probs;
  const T* grad_out;
  T* grad_q;
  T* grad_k;
  T* grad_v;
  T* grad_bias;  ///< added to; null without one
};

void attend_backward(const HeadBackward<float>& head, const HeadShape& shape);
void attend_backward(const HeadBackward<double>& head, const HeadShape& shape);

}  // namespace adjoin::nn
