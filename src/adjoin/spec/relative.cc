#include "adjoin/spec/relative.h"

#include <algorithm>
#include <cmath>

namespace adjoin {

TokenGrid token_grid(int64_t tokens) {
  // Exact for counts far above kMostTokens; two class tokens do not make another square.
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(tokens - 1)));
  return {tokens - side * side, side};
}

std::vector<int64_t> relative_table_rows(int64_t side, int64_t distance) {
  std::vector<int64_t> rows;
  for (int64_t query = 0; query < side; ++query) {
    for (int64_t key = 0; key < side; ++key) {
      rows.push_back(std::clamp(key - query, -distance, distance) + distance + 1);
    }
    rows.push_back(0);
  }
  return rows;
}

}  // namespace adjoin
