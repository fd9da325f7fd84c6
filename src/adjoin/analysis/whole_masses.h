#pragma once

// Masses as whole numbers with equal sums, as an exact flow needs them.

#include <cstdint>
#include <vector>

namespace adjoin::analysis {

struct WholeMasses {
  /// In the unit of the masses.
  double mass(int64_t amount) const;

  std::vector<int64_t> from, to;  ///< equal sums, below 2^62
  int shift = 0;                  ///< a mass is its number times 2^-shift
};

/// Whole masses stay what they are. Others are counted in units of some 2^-60 of their sum; then
/// the lighter side is scaled up to the sum of the heavier by the method of the largest remainder.
/// Error(kData) unless they balance. Masses are finite, not negative, and not all 0.
WholeMasses whole_masses(const std::vector<double>& from, const std::vector<double>& to);

}  // namespace adjoin::analysis
