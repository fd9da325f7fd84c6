#include "adjoin/search/halving.h"

#include <algorithm>

namespace adjoin::search {

std::vector<int64_t> Halving::rungs() const {
  std::vector<int64_t> result;
  if (factor < 2) return result;
  for (int64_t rung = epochs / factor; rung > 0; rung /= factor) result.push_back(rung);
  std::reverse(result.begin(), result.end());
  return result;
}

bool Halving::compares_at(int64_t done) const {
  const std::vector<int64_t> all = rungs();
  return std::find(all.begin(), all.end(), done) != all.end();
}

bool Halving::is_over(int64_t done, double reward, const std::vector<double>& others) const {
  if (!compares_at(done)) return false;
  const auto known = std::ssize(others) + 1;
  if (known < factor) return false;
  const auto better =
      std::count_if(others.begin(), others.end(), [&](double other) { return other > reward; });
  return better >= known / factor;
}

}  // namespace adjoin::search
