#include "adjoin/train/adamw_kernel.h"

#include <cmath>

// One copy for processors with AVX2, chosen when the program starts.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ADJOIN_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define ADJOIN_WIDE
#endif

namespace adjoin::train {
namespace {

template <class T>
inline __attribute__((always_inline)) void update(const AdamWVectors<T>& vectors, int64_t begin,
                                                  int64_t end, const AdamWStep& s) {
  T* __restrict values = vectors.values;
  const T* __restrict gradients = vectors.gradients;
  T* __restrict first = vectors.first;
  T* __restrict second = vectors.second;
  const auto decay = static_cast<T>(s.decay);
  const auto beta1 = static_cast<T>(s.beta1);
  const auto rest1 = static_cast<T>(1 - s.beta1);
  const auto beta2 = static_cast<T>(s.beta2);
  const auto rest2 = static_cast<T>(1 - s.beta2);
  const auto step_size = static_cast<T>(s.step_size);
  const auto inverse_root = static_cast<T>(1 / s.root);
  const auto eps = static_cast<T>(s.eps);
  for (int64_t i = begin; i < end; ++i) {
    const T g = gradients[i];
    const T m = beta1 * first[i] + rest1 * g;
    const T v = beta2 * second[i] + rest2 * g * g;
    first[i] = m;
    second[i] = v;
    values[i] = values[i] * decay - step_size * m / (std::sqrt(v) * inverse_root + eps);
  }
}

}  // namespace

ADJOIN_WIDE void adamw(const AdamWVectors<float>& vectors, int64_t begin, int64_t end,
                       const AdamWStep& step) {
  update(vectors, begin, end, step);
}

ADJOIN_WIDE void adamw(const AdamWVectors<double>& vectors, int64_t begin, int64_t end,
                       const AdamWStep& step) {
  update(vectors, begin, end, step);
}

}  // namespace adjoin::train
