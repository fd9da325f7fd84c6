#pragma once

// Elementwise steps whose backward pass also sums over rows for a bias: one pass over memory on a
// GPU. Knows no LibTorch. Matrices are row-major and contiguous.

#include <array>
#include <cstdint>

#include "adjoin/nn/kernels/bf16.h"

namespace adjoin::nn {

/// out = gelu(x + bias), the exact one.
template <class V, class S>
void bias_gelu_on_gpu(const V* x, const S* bias, V* out, int64_t rows, int64_t width, void* stream);

/// How many `parts` (parts, width) the functions below fill.
int64_t column_parts(int64_t rows, int64_t width);

/// grad_x = grad gelu'(x + bias); sums (width) = its sums over rows.
template <class V, class S>
void bias_gelu_backward_on_gpu(const V* grad, const V* x, const S* bias, V* grad_x, int64_t rows,
                               int64_t width, S* parts, S* sums, void* stream);

/// Where the values of one of q, k, v stand; those of a head are neighbours.
template <class V>
struct HeadsPart {
  const V* data;
  int64_t image, token, head;  ///< strides
};

struct HeadsShape {
  int64_t images, tokens, heads, dim;
};

/// joined (images, tokens, 3, heads, dim) = q, k, v side by side; sums (3 heads dim) = the sums
/// over images and tokens.
template <class V, class S>
void join_heads_on_gpu(const std::array<HeadsPart<V>, 3>& from, const HeadsShape& shape, V* joined,
                       S* parts, S* sums, void* stream);

}  // namespace adjoin::nn
