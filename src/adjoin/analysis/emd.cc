#include "adjoin/analysis/emd.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "adjoin/analysis/min_cost_flow.h"
#include "adjoin/analysis/whole_masses.h"
#include "adjoin/core/error.h"

namespace adjoin::analysis {
namespace {

constexpr double kMostCost = 1e300;  // sums of a few are still numbers
constexpr int kBitsOfDouble = 53;

template <class... Values>
[[noreturn]] void refuse(fmt::format_string<Values...> format, Values&&... values) {
  throw Error(ErrorKind::kData, fmt::format(format, std::forward<Values>(values)...));
}

void check_masses(const char* side, const std::vector<double>& masses) {
  if (masses.empty()) refuse("{} has no masses, must have at least one", side);
  double sum = 0;
  for (size_t i = 0; i < masses.size(); ++i) {
    if (!std::isfinite(masses[i]) || masses[i] < 0) {
      refuse("mass {} of {} is {}, must be a number of at least 0", i, side, masses[i]);
    }
    sum += masses[i];
  }
  if (sum == 0) refuse("all {} masses of {} are 0, one at least must be more", masses.size(), side);
  if (!std::isfinite(sum)) refuse("the masses of {} sum to more than a double holds", side);
}

void check_points(const char* side, const Masses& masses) {
  if (masses.dim < 1) {
    refuse("points of {} have {} coordinates, must have 1 or more", side, masses.dim);
  }
  const auto dim = static_cast<size_t>(masses.dim);
  if (masses.points.size() / dim != masses.mass.size() || masses.points.size() % dim != 0) {
    refuse("{} has {} coordinates for {} masses, must have {} for each", side, masses.points.size(),
           masses.mass.size(), dim);
  }
  for (size_t i = 0; i < masses.points.size(); ++i) {
    if (std::isfinite(masses.points[i])) continue;
    refuse("coordinate {} of point {} of {} is {}, must be finite", i % dim, i / dim, side,
           masses.points[i]);
  }
}

void check_pairs(size_t from, size_t to) {
  if (from > static_cast<size_t>(kMostPairs) / to) {
    refuse("{} x {} points make {:.0f} pairs, must be at most {}", from, to,
           static_cast<double>(from) * static_cast<double>(to), kMostPairs);
  }
}

/// The distance must be a number.
void check_product(const std::vector<double>& masses, const std::vector<double>& costs) {
  const double sum = std::accumulate(masses.begin(), masses.end(), 0.0);
  const double largest = *std::max_element(costs.begin(), costs.end());
  if (std::isfinite(sum * largest)) return;
  refuse("masses that sum to {} at costs up to {} are more than a double holds", sum, largest);
}

/// The length of x - y where its square is too small or too large for a double.
double scaled_length(const double* x, const double* y, size_t dim) {
  double longest = 0;
  for (size_t k = 0; k < dim; ++k) longest = std::max(longest, std::abs(x[k] - y[k]));
  if (longest == 0 || !std::isfinite(longest)) return longest;
  double sum = 0;
  for (size_t k = 0; k < dim; ++k) {
    const double part = (x[k] - y[k]) / longest;
    sum += part * part;
  }
  return longest * std::sqrt(sum);
}

double ground_cost(const double* x, const double* y, size_t dim, GroundCost cost) {
  double sum = 0;
  if (cost == GroundCost::kL1) {
    for (size_t k = 0; k < dim; ++k) sum += std::abs(x[k] - y[k]);
    return sum;
  }
  for (size_t k = 0; k < dim; ++k) sum += (x[k] - y[k]) * (x[k] - y[k]);
  if (cost == GroundCost::kSquaredL2) return sum;
  const bool is_exact = sum > 0x1p-900 && sum < 0x1p1000;
  return is_exact ? std::sqrt(sum) : scaled_length(x, y, dim);
}

/// What every pair costs, checked: from x to.
std::vector<double> ground_costs(const Masses& from, const Masses& to, GroundCost cost) {
  const auto dim = static_cast<size_t>(from.dim);
  std::vector<double> costs;
  costs.reserve(from.mass.size() * to.mass.size());
  for (size_t i = 0; i < from.mass.size(); ++i) {
    for (size_t j = 0; j < to.mass.size(); ++j) {
      costs.push_back(ground_cost(&from.points[i * dim], &to.points[j * dim], dim, cost));
      if (costs.back() <= kMostCost) continue;
      refuse("the {} cost from point {} of from to point {} of to is {}, must be at most {}",
             enum_name(cost), i, j, costs.back(), kMostCost);
    }
  }
  return costs;
}

/// Which amounts are not 0, and these alone: a point without mass needs no flow.
struct Used {
  explicit Used(const std::vector<int64_t>& all) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i] == 0) continue;
      index.push_back(i);
      amounts.push_back(all[i]);
    }
  }

  std::vector<size_t> index;
  std::vector<int64_t> amounts;
};

/// Makes v, then u as large as the costs allow (their c-transforms), so that u_i + v_j <= d_ij
/// whatever u was. Rows that have no value yet are infinite.
void fit_duals(const std::vector<double>& costs, std::vector<double>& u, std::vector<double>& v) {
  std::fill(v.begin(), v.end(), std::numeric_limits<double>::infinity());
  for (size_t i = 0; i < u.size(); ++i) {
    if (std::isinf(u[i])) continue;
    const double* const row = &costs[i * v.size()];
    for (size_t j = 0; j < v.size(); ++j) v[j] = std::min(v[j], row[j] - u[i]);
  }
  for (size_t i = 0; i < u.size(); ++i) {
    const double* const row = &costs[i * v.size()];
    u[i] = std::numeric_limits<double>::infinity();
    for (size_t j = 0; j < v.size(); ++j) u[i] = std::min(u[i], row[j] - v[j]);
  }
}

/// A problem that was checked, in the whole numbers of the network simplex.
class Solver {
 public:
  Solver(const WholeMasses& masses, const std::vector<double>& costs)
      : costs_(costs),
        masses_(masses),
        sources_(masses.from),
        sinks_(masses.to),
        limit_(std::min(int64_t{1} << kBitsOfDouble,
                        largest_unit_cost(std::ssize(sources_.index), std::ssize(sinks_.index)))),
        u_(masses.from.size(), 0.0),
        v_(masses.to.size(), 0.0) {}

  Transport solve();

 private:
  /// Where they stand in the caller's order.
  size_t row(int64_t source) const { return sources_.index[static_cast<size_t>(source)]; }
  size_t column(int64_t sink) const { return sinks_.index[static_cast<size_t>(sink)]; }
  double slack(size_t i, size_t j) const { return costs_[i * v_.size() + j] - (u_[i] + v_[j]); }

  int64_t whole_cost(double cost, int shift) const;
  void raise_duals(const Flow& flow, int shift);
  Transport certified(const Flow& flow) const;

  const std::vector<double>& costs_;
  const WholeMasses& masses_;
  const Used sources_;
  const Used sinks_;
  const int64_t limit_;  ///< of costs in whole numbers
  std::vector<double> u_;
  std::vector<double> v_;
};

/// In units of 2^-shift, which leaves whole costs what they are. Rounded up: what costs something
/// is never free, so equal masses have distance 0 exactly.
int64_t Solver::whole_cost(double cost, int shift) const {
  const double units = std::ceil(std::ldexp(std::max(cost, 0.0), shift));
  return units < static_cast<double>(limit_) ? static_cast<int64_t>(units) : limit_;
}

/// Adds what a flow at the costs left over says. Potentials differ by no more than the largest
/// cost; counted from the middle one, they are small where the points are close together.
void Solver::raise_duals(const Flow& flow, int shift) {
  std::vector<int64_t> heights = flow.u;
  const auto middle = heights.begin() + std::ssize(heights) / 2;
  std::nth_element(heights.begin(), middle, heights.end());
  std::vector<double> u(u_.size(), std::numeric_limits<double>::infinity());
  for (size_t i = 0; i < flow.u.size(); ++i) {
    const size_t at = sources_.index[i];
    u[at] = u_[at] + std::ldexp(static_cast<double>(flow.u[i] - *middle), -shift);
  }
  u_ = std::move(u);
  fit_duals(costs_, u_, v_);
}

Transport Solver::certified(const Flow& flow) const {
  Transport result;
  for (const Flow::Arc& arc : flow.arcs) {
    const size_t i = row(arc.source);
    const size_t j = column(arc.sink);
    const double mass = masses_.mass(arc.amount);
    result.plan.push_back({static_cast<int64_t>(i), static_cast<int64_t>(j), mass});
    result.distance += mass * costs_[i * v_.size() + j];
    result.gap += mass * slack(i, j);  // the same as by sums, but nothing cancels
  }
  result.gap = std::max(result.gap, 0.0);  // below 0 by rounding alone
  result.u = u_;
  result.v = v_;
  return result;
}

Transport Solver::solve() {
  constexpr int kMostRounds = 3;
  constexpr int kFinerBits = 24;
  constexpr double kTightGap = 1e-11;  // of the distance
  const double largest = *std::max_element(costs_.begin(), costs_.end());
  const int bits = std::ilogb(static_cast<double>(limit_));
  int shift = largest == 0 ? 0 : bits - 1 - std::ilogb(largest);
  Transport best;
  for (int round = 0; round < kMostRounds; ++round, shift += kFinerBits) {
    const Flow flow = cheapest_flow(sources_.amounts, sinks_.amounts, [&](int64_t i, int64_t j) {
      return whole_cost(slack(row(i), column(j)), shift);
    });
    raise_duals(flow, shift);
    Transport next = certified(flow);
    if (round > 0 && next.gap >= best.gap) break;
    best = std::move(next);
    // Where a few costs are far larger than those that matter, these were rounded too coarsely.
    // What the duals leave of them is small: solve that in finer units, the rest cut off.
    if (best.gap <= kTightGap * best.distance) break;
  }
  return best;
}

}  // namespace

bool has_emd() { return true; }

Transport earth_movers_distance(const Masses& from, const Masses& to, GroundCost cost) {
  check_masses("from", from.mass);
  check_masses("to", to.mass);
  check_points("from", from);
  check_points("to", to);
  if (from.dim != to.dim) {
    refuse("points of from have {} coordinates, those of to {}; they must be the same", from.dim,
           to.dim);
  }
  check_pairs(from.mass.size(), to.mass.size());
  const WholeMasses masses = whole_masses(from.mass, to.mass);
  const std::vector<double> costs = ground_costs(from, to, cost);
  check_product(from.mass, costs);
  return Solver(masses, costs).solve();
}

Transport transport(const std::vector<double>& from, const std::vector<double>& to,
                    const std::vector<double>& costs) {
  check_masses("from", from);
  check_masses("to", to);
  check_pairs(from.size(), to.size());
  if (costs.size() != from.size() * to.size()) {
    refuse("there are {} costs, must be {} x {}", costs.size(), from.size(), to.size());
  }
  for (size_t i = 0; i < costs.size(); ++i) {
    if (costs[i] >= 0 && costs[i] <= kMostCost) continue;
    refuse("the cost from {} to {} is {}, must be a number from 0 to {}", i / to.size(),
           i % to.size(), costs[i], kMostCost);
  }
  check_product(from, costs);
  return Solver(whole_masses(from, to), costs).solve();
}

}  // namespace adjoin::analysis
