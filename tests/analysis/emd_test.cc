#include "adjoin/analysis/emd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "adjoin/core/rng.h"
#include "support/expect_error.h"

namespace adjoin::analysis {
namespace {

constexpr GroundCost kCosts[] = {GroundCost::kL1, GroundCost::kL2, GroundCost::kSquaredL2};

/// On purpose not the code under test: one pair at a time, in long double.
double cost_between(const Masses& from, int64_t i, const Masses& to, int64_t j, GroundCost cost) {
  long double l1 = 0;
  long double squares = 0;
  for (int64_t k = 0; k < from.dim; ++k) {
    const long double step =
        static_cast<long double>(from.points[static_cast<size_t>(i * from.dim + k)]) -
        to.points[static_cast<size_t>(j * to.dim + k)];
    l1 += std::abs(step);
    squares += step * step;
  }
  if (cost == GroundCost::kL1) return static_cast<double>(l1);
  return static_cast<double>(cost == GroundCost::kL2 ? std::sqrt(squares) : squares);
}

Masses on_a_line(std::vector<double> mass, std::vector<double> points) {
  return {std::move(mass), std::move(points), 1};
}

/// Points in the unit cube or, with ties and duplicates, on a small grid.
Masses random_points(Rng& rng, int64_t count, int64_t dim, bool is_grid) {
  Masses masses;
  masses.dim = dim;
  masses.mass.assign(static_cast<size_t>(count), 1.0);
  for (int64_t i = 0; i < count * dim; ++i) {
    masses.points.push_back(is_grid ? static_cast<double>(rng.below(4)) : rng.uniform());
  }
  return masses;
}

/// Whole masses of this sum, or real ones; some are 0.
void draw_masses(Rng& rng, Masses& masses, bool is_whole, int64_t sum) {
  std::fill(masses.mass.begin(), masses.mass.end(), 0.0);
  const auto count = std::ssize(masses.mass);
  if (is_whole) {
    for (int64_t i = 0; i < sum; ++i) ++masses.mass[static_cast<size_t>(rng.below(count))];
    return;
  }
  double total = 0;
  for (double& mass : masses.mass) total += mass = rng.chance(0.2) ? 0 : rng.uniform();
  if (total == 0) total = masses.mass[0] = 1;
  for (double& mass : masses.mass) mass *= static_cast<double>(sum) / total;
}

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

bool are_whole(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return x == std::floor(x); });
}

double largest_cost(const Masses& from, const Masses& to, GroundCost cost) {
  double largest = 0;
  for (int64_t i = 0; i < std::ssize(from.mass); ++i) {
    for (int64_t j = 0; j < std::ssize(to.mass); ++j) {
      largest = std::max(largest, cost_between(from, i, to, j, cost));
    }
  }
  return largest;
}

/// Row and column sums are the masses, to `tolerance`.
void expect_marginals(const Transport& result, const Masses& from, const Masses& to,
                      double tolerance) {
  std::vector<double> rows(from.mass.size());
  std::vector<double> columns(to.mass.size());
  for (const auto& [i, j, mass] : result.plan) {
    EXPECT_GT(mass, 0);
    rows.at(static_cast<size_t>(i)) += mass;
    columns.at(static_cast<size_t>(j)) += mass;
  }
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_NEAR(rows[i], from.mass[i], tolerance);
  for (size_t j = 0; j < columns.size(); ++j) EXPECT_NEAR(columns[j], to.mass[j], tolerance);
}

/// The whole proof: a plan with the right sums, duals below every cost and equal to it where mass
/// moves, and a distance both agree on. What rounding may do is 1e-13 of the largest cost.
void expect_certified(const Transport& result, const Masses& from, const Masses& to,
                      GroundCost cost) {
  const double unit = 1e-13 * largest_cost(from, to, cost);
  const double sum = sum_of(from.mass);
  const bool is_whole = are_whole(from.mass) && are_whole(to.mass);
  expect_marginals(result, from, to, is_whole ? 0 : 1e-14 * sum);
  ASSERT_EQ(result.u.size(), from.mass.size());
  ASSERT_EQ(result.v.size(), to.mass.size());
  double most_violated = 0;
  for (int64_t i = 0; i < std::ssize(from.mass); ++i) {
    for (int64_t j = 0; j < std::ssize(to.mass); ++j) {
      const double bound = result.u[static_cast<size_t>(i)] + result.v[static_cast<size_t>(j)];
      most_violated = std::max(most_violated, bound - cost_between(from, i, to, j, cost));
    }
  }
  EXPECT_LE(most_violated, unit);
  double primal = 0;
  for (const auto& [i, j, mass] : result.plan) {
    const double price = cost_between(from, i, to, j, cost);
    EXPECT_NEAR(result.u[static_cast<size_t>(i)] + result.v[static_cast<size_t>(j)], price, unit);
    primal += mass * price;
  }
  const double dual = std::inner_product(result.u.begin(), result.u.end(), from.mass.begin(), 0.0) +
                      std::inner_product(result.v.begin(), result.v.end(), to.mass.begin(), 0.0);
  EXPECT_NEAR(result.distance, primal, unit * sum);
  EXPECT_NEAR(result.distance, dual, unit * sum);
  EXPECT_NEAR(result.gap, result.distance - dual, unit * sum);
  EXPECT_GE(result.gap, 0);
  EXPECT_LT(result.plan.size(), from.mass.size() + to.mass.size());
}

/// Sum over the line of |CDF_from - CDF_to|.
double distance_by_cdf(const Masses& from, const Masses& to) {
  std::map<double, double> steps;
  for (size_t i = 0; i < from.mass.size(); ++i) steps[from.points[i]] += from.mass[i];
  for (size_t j = 0; j < to.mass.size(); ++j) steps[to.points[j]] -= to.mass[j];
  double distance = 0;
  double height = 0;
  double last = steps.begin()->first;
  for (const auto& [at, step] : steps) {
    distance += std::abs(height) * (at - last);
    height += step;
    last = at;
  }
  return distance;
}

TEST(EarthMoversDistanceTest, IsThatOfAnExampleByHand) {
  const Masses from = on_a_line({2, 1}, {0, 3});
  const Masses to = on_a_line({1, 2}, {1, 4});
  EXPECT_EQ(earth_movers_distance(from, to, GroundCost::kL1).distance, 6);
  const Transport result = earth_movers_distance(from, to, GroundCost::kSquaredL2);
  EXPECT_EQ(result.distance, 1 + 16 + 1);  // crossing over, 9 + 4 + 1 + .., is dearer
  ASSERT_EQ(result.plan.size(), 3U);
  EXPECT_EQ(result.plan[1].from, 0);
  EXPECT_EQ(result.plan[1].to, 1);
  EXPECT_EQ(result.plan[1].mass, 1);
  EXPECT_EQ(result.gap, 0);
}

TEST(EarthMoversDistanceTest, IsTheAreaBetweenTheDistributionsOnALine) {
  Rng rng(stream_key(1, {}));
  for (int round = 0; round < 100; ++round) {
    const bool is_whole = round % 2 == 0;
    Masses from = random_points(rng, 1 + rng.below(30), 1, round % 3 == 0);
    Masses to = random_points(rng, 1 + rng.below(30), 1, round % 3 == 0);
    draw_masses(rng, from, is_whole, 40);
    draw_masses(rng, to, is_whole, 40);
    const double wanted = distance_by_cdf(from, to);
    for (const GroundCost cost : {GroundCost::kL1, GroundCost::kL2}) {
      EXPECT_NEAR(earth_movers_distance(from, to, cost).distance, wanted, 1e-12);
    }
  }
}

TEST(EarthMoversDistanceTest, IsZeroFromMassesToThemselvesInAnyOrder) {
  Rng rng(stream_key(2, {}));
  for (int round = 0; round < 30; ++round) {
    Masses masses = random_points(rng, 2 + rng.below(20), 3, round % 2 == 0);
    std::fill_n(masses.points.begin(), 6, 0.0);
    masses.points[3] = round % 3 == 0 ? 0 : 1e-60;  // far below what costs are rounded to
    draw_masses(rng, masses, round % 2 == 1, 25);
    Masses reversed = masses;
    std::reverse(reversed.mass.begin(), reversed.mass.end());
    for (int64_t i = 0; i < std::ssize(masses.mass); ++i) {
      std::copy_n(masses.points.begin() + i * 3, 3, reversed.points.end() - (i + 1) * 3);
    }
    for (const GroundCost cost : kCosts) {
      const Transport result = earth_movers_distance(masses, reversed, cost);
      EXPECT_EQ(result.distance, 0);
      EXPECT_NEAR(result.gap, 0, 1e-12);
    }
  }
}

TEST(EarthMoversDistanceTest, IsTheSameBothWays) {
  Rng rng(stream_key(3, {}));
  for (int round = 0; round < 60; ++round) {
    Masses from = random_points(rng, 1 + rng.below(20), 2, round % 2 == 0);
    Masses to = random_points(rng, 1 + rng.below(20), 2, false);
    draw_masses(rng, from, round % 4 < 2, 20);
    draw_masses(rng, to, round % 4 < 2, 20);
    if (round % 4 == 3) to.mass.front() += 1e-9;  // the lighter side is scaled, whichever it is
    for (const GroundCost cost : kCosts) {
      const double there = earth_movers_distance(from, to, cost).distance;
      EXPECT_NEAR(earth_movers_distance(to, from, cost).distance, there, 1e-13 * there);
    }
  }
}

TEST(EarthMoversDistanceTest, KeepsTheTriangleInequalityWhereTheCostIsADistance) {
  Rng rng(stream_key(4, {}));
  for (int round = 0; round < 60; ++round) {
    std::vector<Masses> all;
    for (int i = 0; i < 3; ++i) {
      all.push_back(random_points(rng, 1 + rng.below(15), 2, round % 2 == 0));
      draw_masses(rng, all.back(), round % 3 == 0, 12);
    }
    for (const GroundCost cost : {GroundCost::kL1, GroundCost::kL2}) {
      const double detour = earth_movers_distance(all[0], all[1], cost).distance +
                            earth_movers_distance(all[1], all[2], cost).distance;
      EXPECT_LE(earth_movers_distance(all[0], all[2], cost).distance, detour + 1e-12);
    }
  }
}

TEST(EarthMoversDistanceTest, IsTheBestOfAllPermutationsForSingleUnits) {
  Rng rng(stream_key(5, {}));
  for (int round = 0; round < 40; ++round) {
    const int64_t count = 1 + round % 6;
    const Masses from = random_points(rng, count, 2, round % 2 == 0);
    const Masses to = random_points(rng, count, 2, round % 2 == 0);
    for (const GroundCost cost : kCosts) {
      std::vector<int64_t> order(static_cast<size_t>(count));
      std::iota(order.begin(), order.end(), int64_t{0});
      double best = INFINITY;
      do {
        double total = 0;
        for (int64_t i = 0; i < count; ++i) {
          total += cost_between(from, i, to, order[static_cast<size_t>(i)], cost);
        }
        best = std::min(best, total);
      } while (std::next_permutation(order.begin(), order.end()));
      const Transport result = earth_movers_distance(from, to, cost);
      EXPECT_NEAR(result.distance, best, 1e-13 * (1 + best));
      EXPECT_EQ(std::ssize(result.plan), count);
    }
  }
}

TEST(EarthMoversDistanceTest, HasAPlanOfWholeNumbersAndNoGapWhereAllIsWhole) {
  Rng rng(stream_key(6, {}));
  for (int round = 0; round < 100; ++round) {
    Masses from = random_points(rng, 1 + rng.below(25), 2, true);
    Masses to = random_points(rng, 1 + rng.below(25), 2, true);
    draw_masses(rng, from, true, 60);
    draw_masses(rng, to, true, 60);
    for (const GroundCost cost : {GroundCost::kL1, GroundCost::kSquaredL2}) {
      const Transport result = earth_movers_distance(from, to, cost);
      for (const Shipment& shipment : result.plan) {
        EXPECT_EQ(shipment.mass, std::floor(shipment.mass));
      }
      EXPECT_EQ(result.distance, std::floor(result.distance));
      EXPECT_EQ(result.gap, 0);
    }
  }
}

TEST(EarthMoversDistanceTest, ProvesItselfOnAThousandRandomInstances) {
  Rng rng(stream_key(7, {}));
  for (int round = 0; round < 1000; ++round) {
    const int64_t dim = 1 + rng.below(4);
    const bool is_grid = rng.chance(0.5);  // ties and points that coincide
    const bool is_whole = rng.chance(0.5);
    Masses from = random_points(rng, 1 + rng.below(24), dim, is_grid);
    Masses to = random_points(rng, 1 + rng.below(24), dim, is_grid);
    draw_masses(rng, from, is_whole, 30);
    draw_masses(rng, to, is_whole, 30);
    const GroundCost cost = kCosts[round % 3];
    SCOPED_TRACE(round);
    expect_certified(earth_movers_distance(from, to, cost), from, to, cost);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(EarthMoversDistanceTest, ProvesItselfOnAThousandPointsEach) {
  Rng rng(stream_key(8, {}));
  const Masses from = random_points(rng, 1000, 2, false);
  const Masses to = random_points(rng, 1000, 2, false);
  expect_certified(earth_movers_distance(from, to, GroundCost::kL2), from, to, GroundCost::kL2);
}

TEST(EarthMoversDistanceTest, IsAsExactWhereOneCostIsFarLargerThanTheOthers) {
  Rng rng(stream_key(9, {}));
  const Masses from = random_points(rng, 60, 2, false);
  const Masses to = random_points(rng, 60, 2, false);
  for (const GroundCost cost : {GroundCost::kL1, GroundCost::kL2}) {
    const auto without = earth_movers_distance(from, to, cost);
    for (const double far : {-1e9, 1e9, 1e12, -1e14}) {
      Masses a = from;
      Masses b = to;
      for (Masses* side : {&a, &b}) {
        side->mass.push_back(1);
        side->points.insert(side->points.end(), {far, 0});
      }
      const auto result = earth_movers_distance(a, b, cost);
      EXPECT_NEAR(result.distance, without.distance, 1e-12 * without.distance);
      EXPECT_LE(result.gap, 1e-16 * std::abs(far));  // duals are doubles as large as that
    }
  }
}

TEST(EarthMoversDistanceTest, ScalesWithMassesAndPointsOfAnySize) {
  Rng rng(stream_key(10, {}));
  const Masses from = random_points(rng, 12, 2, false);
  const Masses to = random_points(rng, 12, 2, false);
  const double plain = earth_movers_distance(from, to, GroundCost::kL2).distance;
  for (const double mass : {0x1p-300, 0x1p300}) {
    for (const double length : {0x1p-700, 0x1p-535, 0x1p700}) {
      Masses a = from;
      Masses b = to;
      for (Masses* side : {&a, &b}) {
        for (double& value : side->mass) value *= mass;
        for (double& value : side->points) value *= length;
      }
      const double distance = earth_movers_distance(a, b, GroundCost::kL2).distance;
      EXPECT_NEAR(distance / mass / length, plain, 1e-13 * plain);
    }
  }
}

TEST(EarthMoversDistanceTest, TakesAMassTooSmallToCount) {
  const Masses from = on_a_line({1, 1e-30, 0.5}, {0, 5, 1});
  const Masses to = on_a_line({1.5}, {0});
  const Transport result = earth_movers_distance(from, to, GroundCost::kL1);
  EXPECT_NEAR(result.distance, 0.5, 1e-15);
  EXPECT_EQ(result.plan.size(), 2U);
  EXPECT_EQ(result.u[1] + result.v[0], 5);
}

TEST(EarthMoversDistanceTest, BalancesMassesThatDifferByRounding) {
  const Masses from = on_a_line({1.0 / 3, 1.0 / 3, 1.0 / 3}, {0, 1, 2});
  const Masses to = on_a_line({0.1, 0.2, 0.3, 0.4}, {0, 1, 2, 3});
  for (const GroundCost cost : kCosts) {
    expect_certified(earth_movers_distance(from, to, cost), from, to, cost);
  }
  const Masses heavier = on_a_line({1 + 9e-10}, {0});
  const Transport result = earth_movers_distance(from, heavier, GroundCost::kL1);
  EXPECT_NEAR(result.distance, 1 + 9e-10, 1e-15);
}

TEST(EarthMoversDistanceTest, RefusesMassesThatDoNotBalance) {
  const auto refused = [](std::vector<double> from, std::vector<double> to,
                          std::initializer_list<std::string_view> parts) {
    const Masses a = on_a_line(from, std::vector<double>(from.size()));
    const Masses b = on_a_line(to, std::vector<double>(to.size()));
    expect_error(ErrorKind::kData, parts, [&] { earth_movers_distance(a, b, GroundCost::kL1); });
  };
  refused({2, 1}, {4}, {"from sum to 3", "to to 4", "whole masses must be equal"});
  refused({1e12}, {1e12 + 1}, {"1000000000001", "must be equal"});
  refused({0.5, 0.25}, {0.5}, {"from sum to 0.75", "to to 0.5", "within 1e-9"});
  refused({1}, {1 + 2e-9}, {"within 1e-9"});
  refused({1e300}, {1e-300}, {"within 1e-9"});
}

TEST(EarthMoversDistanceTest, RefusesWhatAreNoMasses) {
  const auto refused = [](const std::vector<double>& mass,
                          std::initializer_list<std::string_view> parts) {
    const Masses bad = on_a_line(mass, std::vector<double>(mass.size()));
    const Masses good = on_a_line({1}, {0});
    expect_error(ErrorKind::kData, parts,
                 [&] { earth_movers_distance(bad, good, GroundCost::kL2); });
    expect_error(ErrorKind::kData, {"to "}, [&] { transport({1}, mass, {}); });
    expect_error(ErrorKind::kData, parts, [&] { transport(mass, {1}, {}); });
  };
  refused({}, {"from has no masses"});
  refused({0, 0}, {"all 2 masses of from are 0"});
  refused({2, -1}, {"mass 1 of from is -1", "at least 0"});
  refused({NAN}, {"mass 0 of from is nan"});
  refused({1, 1, INFINITY}, {"mass 2 of from is inf"});
  refused({1e308, 1e308}, {"masses of from", "more than a double holds"});
}

TEST(EarthMoversDistanceTest, RefusesWhatAreNoPoints) {
  const Masses good{{1}, {0, 0}, 2};
  const auto refused = [&](const Masses& bad, std::initializer_list<std::string_view> parts) {
    expect_error(ErrorKind::kData, parts,
                 [&] { earth_movers_distance(good, bad, GroundCost::kSquaredL2); });
  };
  refused({{1}, {0}, 1}, {"from have 2 coordinates", "to 1"});
  refused({{1}, {}, 0}, {"to have 0 coordinates"});
  refused({{1}, {1}, -1}, {"to have -1 coordinates"});
  refused({{1}, {0, 0, 0}, 2}, {"to has 3 coordinates for 1 masses", "2 for each"});
  refused({{1, 0}, {0, 0}, 2}, {"to has 2 coordinates for 2 masses"});
  refused({{1, 0}, {0, 0, 0, NAN}, 2}, {"coordinate 1 of point 1 of to is nan"});
  refused({{1}, {INFINITY, 0}, 2}, {"coordinate 0 of point 0 of to is inf"});
  refused({{1}, {1e200, 0}, 2},
          {"sql2 cost from point 0 of from to point 0 of to is inf", "1e+300"});
  refused({{1}, {1e151, 0}, 2}, {"must be at most 1e+300"});
}

TEST(TransportTest, TakesAnyCosts) {
  const Transport result = transport({1, 2}, {2, 1}, {0, 7, 1, 0});
  EXPECT_EQ(result.distance, 1);
  EXPECT_EQ(result.plan.size(), 3U);
  EXPECT_EQ(transport({3}, {1, 2}, {5, 0.5}).distance, 6);
  EXPECT_EQ(transport({1, 1}, {1, 1}, {0, 0, 0, 0}).distance, 0);
}

TEST(TransportTest, GivesValuesToPointsWithoutMass) {
  const std::vector<double> costs = {1, 9, 2, 8, 3, 7};
  const Transport result = transport({0, 1, 0}, {1, 0}, costs);
  EXPECT_EQ(result.distance, 2);
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 2; ++j) EXPECT_LE(result.u[i] + result.v[j], costs[2 * i + j]);
  }
}

TEST(TransportTest, RefusesWhatAreNoCosts) {
  const auto refused = [](const std::vector<double>& costs,
                          std::initializer_list<std::string_view> parts) {
    expect_error(ErrorKind::kData, parts, [&] { transport({1, 1}, {1, 1}, costs); });
  };
  refused({1, 2, 3}, {"3 costs", "2 x 2"});
  refused({}, {"0 costs"});
  refused({1, 2, -3, 4}, {"from 1 to 0 is -3", "0 to 1e+300"});
  refused({1, 2, 3, NAN}, {"from 1 to 1 is nan"});
  refused({1, INFINITY, 3, 4}, {"from 0 to 1 is inf"});
  expect_error(ErrorKind::kData, {"1e+200", "more than a double holds"},
               [] { transport({1e200}, {1e200}, {1e200}); });
}

TEST(TransportTest, RefusesMorePairsThanItHasMemoryFor) {
  const std::vector<double> many(8193, 1.0);
  expect_error(ErrorKind::kData, {"8193 x 8193", "67125249 pairs", "at most 67108864"},
               [&] { transport(many, many, {}); });
}

}  // namespace
}  // namespace adjoin::analysis
