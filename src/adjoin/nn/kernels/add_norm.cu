// A warp holds a row in registers: every value is read once and written once.
#include <algorithm>

#include "adjoin/nn/kernels/add_norm.h"
#include "adjoin/nn/kernels/device.cuh"

namespace adjoin::nn {
namespace {

constexpr int kRows = 4;  // warps of a block
constexpr int64_t kMostBlocks = 1056;
constexpr int64_t kMostParts = 528;

__device__ int64_t placed(const int32_t* place, int64_t row, int64_t tokens) {
  if (place == nullptr) return row;
  const int64_t token = row % tokens;
  return row - token + place[token];
}

/// Calls work(i, j) for the packs of this lane: i counts its registers, j the columns.
template <int N, int Packs, class Work>
__device__ void for_each_pack(int width, Work work) {
#pragma unroll
  for (int pack = 0; pack < Packs; ++pack) {
    const int column = (pack * kWarp + static_cast<int>(threadIdx.x)) * N;
    if (column < width) work(pack * N, column);
  }
}

/// A row of a vector that begins anywhere.
template <int N, int Packs, class S>
__device__ void load_vector(const S* from, int width, S* to) {
  for_each_pack<N, Packs>(width, [&](int i, int column) {
#pragma unroll
    for (int k = 0; k < N; ++k) to[i + k] = from == nullptr ? S(0) : from[column + k];
  });
}

template <class S, class V, int N, int Packs>
__global__ void __launch_bounds__(kRows* kWarp)
    forward(const AddNorm<S, V> task, int64_t rows, int width, int64_t tokens) {
  constexpr int kMine = N * Packs;
  S weight[kMine], bias[kMine], branch_bias[kMine];
  load_vector<N, Packs>(task.weight, width, weight);
  load_vector<N, Packs>(task.bias, width, bias);
  load_vector<N, Packs>(task.branch_bias, width, branch_bias);
  const int64_t step = int64_t{gridDim.x} * kRows;
  for (int64_t row = int64_t{blockIdx.x} * kRows + threadIdx.y; row < rows; row += step) {
    S values[kMine];
    S total = 0;
    const S* x = task.x + row * width;
    if (task.branch == nullptr) {
      for_each_pack<N, Packs>(width, [&](int i, int column) { load<N>(x + column, values + i); });
    } else {
      const V* branch = task.branch + placed(task.branch_place, row, tokens) * width;
      const S scale = task.branch_scale == nullptr ? S(1) : task.branch_scale[row / tokens];
      for_each_pack<N, Packs>(width, [&](int i, int column) {
        S added[N];
        load<N>(x + column, values + i);
        load<N>(branch + column, added);
#pragma unroll
        for (int k = 0; k < N; ++k) values[i + k] += scale * (added[k] + branch_bias[i + k]);
        store<N>(values + i, task.sum + row * width + column);
      });
    }
    for_each_pack<N, Packs>(width, [&](int i, int) {
#pragma unroll
      for (int k = 0; k < N; ++k) total += values[i + k];
    });
    const S mean = sum_of_warp(total) / width;
    S squares = 0;
    for_each_pack<N, Packs>(width, [&](int i, int) {
#pragma unroll
      for (int k = 0; k < N; ++k) squares += (values[i + k] - mean) * (values[i + k] - mean);
    });
    const S inverse = S(1) / sqrt(sum_of_warp(squares) / width + static_cast<S>(task.eps));
    V* norm = task.norm + placed(task.norm_place, row, tokens) * width;
    for_each_pack<N, Packs>(width, [&](int i, int column) {
      S normed[N];
#pragma unroll
      for (int k = 0; k < N; ++k) {
        normed[k] = (values[i + k] - mean) * inverse * weight[i + k] + bias[i + k];
      }
      store<N>(normed, norm + column);
    });
    if (threadIdx.x == 0) {
      task.statistics[2 * row] = mean;
      task.statistics[2 * row + 1] = inverse;
    }
  }
}

template <class S, class V, int N, int Packs>
__global__ void __launch_bounds__(kRows* kWarp)
    backward(const AddNormBackward<S, V> task, int64_t rows, int width, int64_t tokens) {
  constexpr int kMine = N * Packs;
  S weight[kMine];
  S of_weight[kMine] = {}, of_bias[kMine] = {}, of_branch_bias[kMine] = {};
  load_vector<N, Packs>(task.weight, width, weight);
  const int64_t step = int64_t{gridDim.x} * kRows;
  for (int64_t row = int64_t{blockIdx.x} * kRows + threadIdx.y; row < rows; row += step) {
    const S mean = task.statistics[2 * row];
    const S inverse = task.statistics[2 * row + 1];
    const S* sum = task.sum + row * width;
    const V* grad_norm = task.grad_norm + placed(task.norm_place, row, tokens) * width;
    S normed[kMine], grad[kMine];
    S total = 0, along = 0;
    for_each_pack<N, Packs>(width, [&](int i, int column) {
      load<N>(sum + column, normed + i);
      load<N>(grad_norm + column, grad + i);
    });
    for_each_pack<N, Packs>(width, [&](int i, int) {
#pragma unroll
      for (int k = i; k < i + N; ++k) {
        normed[k] = (normed[k] - mean) * inverse;
        of_weight[k] += grad[k] * normed[k];
        of_bias[k] += grad[k];
        grad[k] *= weight[k];
        total += grad[k];
        along += grad[k] * normed[k];
      }
    });
    total = sum_of_warp(total) / width;
    along = sum_of_warp(along) / width;
    const int64_t branch_row = placed(task.branch_place, row, tokens);
    const S scale = task.branch_scale == nullptr ? S(1) : task.branch_scale[row / tokens];
    for_each_pack<N, Packs>(width, [&](int i, int column) {
      S other[N] = {};
      if (task.grad_sum != nullptr) load<N>(task.grad_sum + row * width + column, other);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        other[k] += inverse * (grad[i + k] - total - normed[i + k] * along);
      }
      store<N>(other, task.grad_x + row * width + column);
      if (task.grad_branch == nullptr) return;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        other[k] *= scale;
        of_branch_bias[i + k] += other[k];
      }
      store<N>(other, task.grad_branch + branch_row * width + column);
    });
  }
  // The warps of this block together.
  __shared__ S kept[kRows][kWarp * kMine];
  S* part = task.parts + int64_t{blockIdx.x} * 3 * width;
  const auto put = [&](const S* mine, int which) {
    __syncthreads();
    for_each_pack<N, Packs>(width, [&](int i, int column) {
#pragma unroll
      for (int k = 0; k < N; ++k) kept[threadIdx.y][column + k] = mine[i + k];
    });
    __syncthreads();
    for (int j = threadIdx.y * kWarp + threadIdx.x; j < width; j += kRows * kWarp) {
      S all = 0;
#pragma unroll
      for (int row = 0; row < kRows; ++row) all += kept[row][j];
      part[which * width + j] = all;
    }
  };
  put(of_weight, 0);
  put(of_bias, 1);
  put(of_branch_bias, 2);
}

/// Calls work(N, packs) with the registers that a width needs.
template <class Work>
void for_width(int64_t width, Work work) {
  using std::integral_constant;
  const auto with = [&](auto n, auto... packs) {
    const int64_t needed = (width + kWarp * n - 1) / (kWarp * n);
    bool is_done = false;
    ((!is_done && needed <= packs ? (work(n, packs), is_done = true) : false), ...);
  };
  if (width % 4 == 0) {
    with(integral_constant<int, 4>(), integral_constant<int, 1>(), integral_constant<int, 2>(),
         integral_constant<int, 3>(), integral_constant<int, 4>(), integral_constant<int, 6>(),
         integral_constant<int, 8>());
  } else {
    with(integral_constant<int, 1>(), integral_constant<int, 4>(), integral_constant<int, 12>(),
         integral_constant<int, 32>());
  }
}

int64_t blocks_for(const RowShape& shape, int64_t most) {
  return std::clamp<int64_t>((shape.rows + kRows - 1) / kRows, 1, most);
}

}  // namespace

int64_t add_norm_parts(const RowShape& shape) { return blocks_for(shape, kMostParts); }

template <class S, class V>
void add_norm_on_gpu(const AddNorm<S, V>& task, const RowShape& shape, void* stream) {
  for_width(shape.width, [&](auto n, auto packs) {
    const auto blocks = static_cast<unsigned>(blocks_for(shape, kMostBlocks));
    forward<S, V, decltype(n)::value, decltype(packs)::value>
        <<<blocks, dim3(kWarp, kRows), 0, static_cast<cudaStream_t>(stream)>>>(
            task, shape.rows, static_cast<int>(shape.width), shape.tokens);
  });
  check_launch();
}

template <class S, class V>
void add_norm_backward_on_gpu(const AddNormBackward<S, V>& task, const RowShape& shape, S* grads,
                              void* stream) {
  const auto blocks = static_cast<unsigned>(add_norm_parts(shape));
  for_width(shape.width, [&](auto n, auto packs) {
    backward<S, V, decltype(n)::value, decltype(packs)::value>
        <<<blocks, dim3(kWarp, kRows), 0, static_cast<cudaStream_t>(stream)>>>(
            task, shape.rows, static_cast<int>(shape.width), shape.tokens);
  });
  launch_sum_parts(task.parts, blocks, 3 * shape.width, grads, static_cast<cudaStream_t>(stream));
  check_launch();
}

#define ADJOIN_INSTANTIATE(S, V)                                               \
  template void add_norm_on_gpu(const AddNorm<S, V>&, const RowShape&, void*); \
  template void add_norm_backward_on_gpu(const AddNormBackward<S, V>&, const RowShape&, S*, void*);
ADJOIN_INSTANTIATE(float, float)
ADJOIN_INSTANTIATE(double, double)
ADJOIN_INSTANTIATE(float, Bf16)
#undef ADJOIN_INSTANTIATE

}  // namespace adjoin::nn
