#pragma once

// What the kernels share: packs of neighbours moved at once, sums over a warp, sums of parts.

#include <cuda_bf16.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "adjoin/nn/kernels/bf16.h"

namespace adjoin::nn {

inline constexpr int kWarp = 32;

/// The type a value is computed in, and how it comes and goes.
template <class T>
struct Number {
  using Wide = T;
  __device__ static T widen(T value) { return value; }
  __device__ static T narrow(T value) { return value; }
};

template <>
struct Number<Bf16> {
  using Wide = float;
  __device__ static float widen(Bf16 value) { return __uint_as_float(uint32_t{value.bits} << 16); }
  __device__ static Bf16 narrow(float value) {
    return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
  }
};

/// N neighbours, as one load or store.
template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  T values[N];
};

template <int N, class S, class T>
__device__ void load(const T* from, S* to) {
  const auto pack = *reinterpret_cast<const Pack<T, N>*>(from);
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = static_cast<S>(Number<T>::widen(pack.values[i]));
}

template <int N, class S, class T>
__device__ void store(const S* from, T* to) {
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) pack.values[i] = Number<T>::narrow(from[i]);
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

template <class S>
__device__ S sum_of_warp(S value) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

/// sums[j] = the sum over i of parts[i][j]. One warp wide, kWarp high.
template <class S>
__global__ void sum_parts(const S* __restrict__ parts, int count, int width, S* __restrict__ sums) {
  __shared__ S kept[kWarp][kWarp + 1];
  const int column = blockIdx.x * kWarp + threadIdx.x;
  S sum = 0;
  if (column < width) {
    for (int i = threadIdx.y; i < count; i += kWarp) sum += parts[int64_t{i} * width + column];
  }
  kept[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  sum = sum_of_warp(kept[threadIdx.x][threadIdx.y]);
  const int mine = blockIdx.x * kWarp + threadIdx.y;
  if (threadIdx.x == 0 && mine < width) sums[mine] = sum;
}

template <class S>
void launch_sum_parts(const S* parts, int64_t count, int64_t width, S* sums, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((width + kWarp - 1) / kWarp);
  sum_parts<<<blocks, dim3(kWarp, kWarp), 0, stream>>>(parts, static_cast<int>(count),
                                                       static_cast<int>(width), sums);
}

inline void check_launch() {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string("CUDA error: ") + cudaGetErrorString(error));
  }
}

}  // namespace adjoin::nn
