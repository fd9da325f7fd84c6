#pragma once

// Random numbers that are a function of what they are for. A stream is named by numbers (seed,
// epoch, image, ..) and always gives the same values, on any machine and whoever draws first.
//
//   Rng rng(stream_key(seed, {epoch, image}));
//   if (rng.chance(0.5)) flip(image);

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numbers>

#include "adjoin/core/hash.h"

namespace adjoin {

/// One number for a seed and what tells this stream from the others of it.
constexpr uint64_t stream_key(uint64_t seed, std::initializer_list<uint64_t> parts) {
  uint64_t key = splitmix64(seed);
  for (const uint64_t part : parts) key = splitmix64(key ^ splitmix64(part + 1));
  return key;
}

class Rng {
 public:
  explicit constexpr Rng(uint64_t key) : state_(key) {}

  constexpr uint64_t next() {
    const uint64_t value = splitmix64(state_);
    state_ += 0x9e3779b97f4a7c15U;
    return value;
  }

  /// In [0, 1), 53 random bits.
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  constexpr double uniform(double low, double high) { return low + (high - low) * uniform(); }

  /// 0 to count - 1, each equally likely; count >= 1.
  constexpr int64_t below(int64_t count) {
    const auto bound = static_cast<unsigned __int128>(count);
    return static_cast<int64_t>((bound * next()) >> 64);  // bias below count / 2^64
  }

  constexpr bool chance(double probability) { return uniform() < probability; }

  /// Mean 0, variance 1.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

  /// Beta(a, a), for a > 0: Johnk's method for a <= 1, the ratio of two gammas above.
  double beta(double a) {
    if (a > 1) {
      const double x = gamma(a);
      return x / (x + gamma(a));
    }
    for (;;) {
      const double log_x = std::log(1 - uniform()) / a;
      const double log_y = std::log(1 - uniform()) / a;
      if (std::exp(log_x) + std::exp(log_y) > 1) continue;
      return 1 / (1 + std::exp(log_y - log_x));  // in logarithms: tiny a make both underflow
    }
  }

 private:
  /// Marsaglia and Tsang 2000, shape >= 1.
  double gamma(double shape) {
    const double d = shape - 1.0 / 3;
    const double c = 1 / std::sqrt(9 * d);
    for (;;) {
      const double x = normal();
      const double v = std::pow(1 + c * x, 3);
      if (v > 0 && std::log(1 - uniform()) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
    }
  }

  uint64_t state_;
};

}  // namespace adjoin
