// A thread keeps to a few columns and walks down the rows, so that sums stay in registers.
#include <algorithm>

#include "adjoin/nn/kernels/columns.h"
#include "adjoin/nn/kernels/device.cuh"

namespace adjoin::nn {
namespace {

constexpr int kRows = 8;  // threads of a block down the rows
constexpr int64_t kWantedBlocks = 1056;

template <class S>
__device__ S gelu(S x) {
  return S(0.5) * x * (S(1) + erf(x * S(0.70710678118654752)));
}

template <class S>
__device__ S gelu_slope(S x) {
  const S below = S(0.5) * (S(1) + erf(x * S(0.70710678118654752)));
  return below + x * S(0.39894228040143268) * exp(S(-0.5) * x * x);
}

template <class V, class S, int N>
struct GeluForward {
  const V* x;
  const S* bias;
  V* out;
  int width;

  S kept[N];  // of the bias, for this thread's columns

  __device__ void begin(int column) {
#pragma unroll
    for (int k = 0; k < N; ++k) kept[k] = bias[column + k];
  }

  __device__ void operator()(int64_t row, int column, S* values) const {
    load<N>(x + row * width + column, values);
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] = gelu(values[k] + kept[k]);
    store<N>(values, out + row * width + column);
  }
};

template <class V, class S, int N>
struct GeluBackward {
  const V* grad;
  const V* x;
  const S* bias;
  V* grad_x;
  int width;

  S kept[N];

  __device__ void begin(int column) {
#pragma unroll
    for (int k = 0; k < N; ++k) kept[k] = bias[column + k];
  }

  __device__ void operator()(int64_t row, int column, S* values) const {
    S at[N];
    load<N>(x + row * width + column, at);
    load<N>(grad + row * width + column, values);
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] *= gelu_slope(at[k] + kept[k]);
    store<N>(values, grad_x + row * width + column);
  }
};

template <class V, class S, int N>
struct JoinHeads {
  HeadsPart<V> from[3];
  int64_t tokens;
  int dim;
  int part_width;  // heads dim
  V* joined;

  const V* data;  // of this thread's columns
  int64_t image_stride, token_stride;

  __device__ void begin(int column) {
    const int which = column / part_width;
    const int within = column % part_width;
    // Not from[which]: what is indexed at run time leaves the registers.
    const HeadsPart<V> part = which == 0 ? from[0] : which == 1 ? from[1] : from[2];
    data = part.data + within / dim * part.head + within % dim;
    image_stride = part.image;
    token_stride = part.token;
  }

  __device__ void operator()(int64_t row, int column, S* values) const {
    const int64_t image = row / tokens;
    load<N>(data + image * image_stride + (row - image * tokens) * token_stride, values);
    store<N>(values, joined + row * 3 * part_width + column);
  }
};

/// Calls `step` for N columns of every row; `parts`, where there are any, get the sums of what it
/// leaves in `values`.
template <class S, int N, class Step>
__global__ void __launch_bounds__(kRows* kWarp)
    down_the_rows(Step step, int64_t rows, int width, S* parts) {
  const int column = (blockIdx.x * kWarp + threadIdx.x) * N;
  S sums[N] = {};
  if (column < width) {
    step.begin(column);
    const int64_t stride = int64_t{gridDim.y} * kRows;
    for (int64_t row = int64_t{blockIdx.y} * kRows + threadIdx.y; row < rows; row += stride) {
      S values[N];
      step(row, column, values);
#pragma unroll
      for (int k = 0; k < N; ++k) sums[k] += values[k];
    }
  }
  if (parts == nullptr) return;
  __shared__ S kept[kRows][kWarp * N];
#pragma unroll
  for (int k = 0; k < N; ++k) kept[threadIdx.y][threadIdx.x * N + k] = sums[k];
  __syncthreads();
  for (int j = threadIdx.y * kWarp + threadIdx.x; j < kWarp * N; j += kRows * kWarp) {
    const int64_t mine = int64_t{blockIdx.x} * kWarp * N + j;
    if (mine >= width) continue;
    S all = 0;
#pragma unroll
    for (int row = 0; row < kRows; ++row) all += kept[row][j];
    parts[int64_t{blockIdx.y} * width + mine] = all;
  }
}

template <class S, int N, class Step>
void launch(const Step& step, int64_t rows, int64_t width, S* parts, S* sums, void* stream) {
  const auto across = static_cast<unsigned>((width + kWarp * N - 1) / (kWarp * N));
  const auto down = static_cast<unsigned>(column_parts(rows, width));
  const auto in = static_cast<cudaStream_t>(stream);
  down_the_rows<S, N><<<dim3(across, down), dim3(kWarp, kRows), 0, in>>>(
      step, rows, static_cast<int>(width), parts);
  if (parts != nullptr) launch_sum_parts(parts, down, width, sums, in);
  check_launch();
}

/// Packs of 16 bytes where all columns come in such packs.
template <class V>
constexpr int kPack = 16 / sizeof(V);

}  // namespace

int64_t column_parts(int64_t rows, int64_t width) {
  const int64_t across = (width + kWarp * 8 - 1) / (kWarp * 8);
  const int64_t most = (rows + kRows - 1) / kRows;
  return std::clamp<int64_t>(kWantedBlocks / across, 1, std::max<int64_t>(most, 1));
}

template <class V, class S>
void bias_gelu_on_gpu(const V* x, const S* bias, V* out, int64_t rows, int64_t width,
                      void* stream) {
  const auto run = [&](auto n) {
    constexpr int kN = decltype(n)::value;
    launch<S, kN>(GeluForward<V, S, kN>{x, bias, out, static_cast<int>(width), {}}, rows, width,
                  static_cast<S*>(nullptr), static_cast<S*>(nullptr), stream);
  };
  if (width % kPack<V> == 0) {
    run(std::integral_constant<int, kPack<V>>());
  } else {
    run(std::integral_constant<int, 1>());
  }
}

template <class V, class S>
void bias_gelu_backward_on_gpu(const V* grad, const V* x, const S* bias, V* grad_x, int64_t rows,
                               int64_t width, S* parts, S* sums, void* stream) {
  const auto run = [&](auto n) {
    constexpr int kN = decltype(n)::value;
    launch<S, kN>(GeluBackward<V, S, kN>{grad, x, bias, grad_x, static_cast<int>(width), {}}, rows,
                  width, parts, sums, stream);
  };
  if (width % kPack<V> == 0) {
    run(std::integral_constant<int, kPack<V>>());
  } else {
    run(std::integral_constant<int, 1>());
  }
}

template <class V, class S>
void join_heads_on_gpu(const std::array<HeadsPart<V>, 3>& from, const HeadsShape& shape, V* joined,
                       S* parts, S* sums, void* stream) {
  const int64_t part_width = shape.heads * shape.dim;
  const auto run = [&](auto n) {
    constexpr int kN = decltype(n)::value;
    JoinHeads<V, S, kN> step{};
    std::copy(from.begin(), from.end(), step.from);
    step.tokens = shape.tokens;
    step.dim = static_cast<int>(shape.dim);
    step.part_width = static_cast<int>(part_width);
    step.joined = joined;
    launch<S, kN>(step, shape.images * shape.tokens, 3 * part_width, parts, sums, stream);
  };
  const bool is_packed = std::all_of(from.begin(), from.end(), [&](const HeadsPart<V>& part) {
    return (part.image | part.token | part.head | shape.dim) % kPack<V> == 0 &&
           reinterpret_cast<uintptr_t>(part.data) % 16 == 0;
  });
  if (is_packed) {
    run(std::integral_constant<int, kPack<V>>());
  } else {
    run(std::integral_constant<int, 1>());
  }
}

#define ADJOIN_INSTANTIATE(V, S)                                                                  \
  template void bias_gelu_on_gpu(const V*, const S*, V*, int64_t, int64_t, void*);                \
  template void bias_gelu_backward_on_gpu(const V*, const V*, const S*, V*, int64_t, int64_t, S*, \
                                          S*, void*);                                             \
  template void join_heads_on_gpu(const std::array<HeadsPart<V>, 3>&, const HeadsShape&, V*, S*,  \
                                  S*, void*);
ADJOIN_INSTANTIATE(float, float)
ADJOIN_INSTANTIATE(double, double)
ADJOIN_INSTANTIATE(Bf16, float)
#undef ADJOIN_INSTANTIATE

}  // namespace adjoin::nn
