#pragma once

// A transportation problem in whole numbers, solved by LEMON's network simplex. Not in doubles:
// with those it does not terminate on ties, and rounding makes supplies infeasible.

#include <cstdint>
#include <functional>
#include <vector>

namespace adjoin::analysis {

/// What one unit costs from a source to a sink; both count from 0.
using UnitCost = std::function<int64_t(int64_t source, int64_t sink)>;

struct Flow {
  struct Arc {
    int64_t source = 0;
    int64_t sink = 0;
    int64_t amount = 0;
  };
  std::vector<Arc> arcs;      ///< those that carry something, by source, then sink
  std::vector<int64_t> u, v;  ///< u_i + v_j <= cost, equal where something flows
};

/// The largest cost that overflows nothing in a problem of this size.
int64_t largest_unit_cost(int64_t sources, int64_t sinks);

/// The cheapest flow. Supplies and demands are positive and their sums are equal and below 2^62;
/// costs are 0 to largest_unit_cost().
Flow cheapest_flow(const std::vector<int64_t>& supplies, const std::vector<int64_t>& demands,
                   const UnitCost& cost);

}  // namespace adjoin::analysis
