#pragma once

// Successive halving, as trials come in (ASHA, Li et al. 2020): at a few epochs a trial is compared
// with what others came to at the same epoch, and goes on only if it is among the best of them.

#include <cstdint>
#include <vector>

namespace adjoin::search {

struct Halving {
  int64_t factor = 3;  ///< one of so many goes on; below 2: all do
  int64_t epochs = 1;  ///< of a whole trial

  /// Epochs done after which trials are compared, rising: epochs / factor^k, without the last.
  std::vector<int64_t> rungs() const;

  bool compares_at(int64_t done) const;

  /// Whether a trial ends after `done` epochs. `others`: what other trials came to there.
  bool is_over(int64_t done, double reward, const std::vector<double>& others) const;
};

}  // namespace adjoin::search
