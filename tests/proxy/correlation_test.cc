#include "adjoin/proxy/correlation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace adjoin::proxy {
namespace {

using Row = std::vector<double>;

TEST(CorrelationTest, EqualValuesShareTheirRank) {
  EXPECT_EQ(average_ranks(Row{5, 1, 5, 5, 9}), (Row{3, 1, 3, 3, 5}));
}

// Values of methods.md H.
TEST(CorrelationTest, KnowsTies) {
  const Row x = {1, 2, 2, 3};
  const Row y = {1, 3, 2, 4};
  EXPECT_NEAR(spearman(x, y), 0.948683, 1e-6);
  EXPECT_NEAR(kendall(x, y), 0.912871, 1e-6);
}

TEST(CorrelationTest, IsOneMinusOneOrNothing) {
  const Row x = {1, 10, 100, 1000};
  const Row y = {2, 3, 5, 7};
  const Row z = {7, 5, 3, 2};
  EXPECT_DOUBLE_EQ(spearman(x, y), 1);
  EXPECT_DOUBLE_EQ(kendall(x, y), 1);
  EXPECT_DOUBLE_EQ(spearman(x, z), -1);
  EXPECT_DOUBLE_EQ(kendall(x, z), -1);
  EXPECT_TRUE(std::isnan(spearman(x, Row{4, 4, 4, 4})));
  EXPECT_TRUE(std::isnan(kendall(x, Row{4, 4, 4, 4})));
}

TEST(CorrelationTest, PartialTakesOutWhatAThirdExplains) {
  // By hand: rho xy = 0.8, xz = 0.4, yz = 0.2 gives (0.8 - 0.08) / sqrt(0.84 x 0.96).
  const Row x = {1, 2, 3, 4};
  const Row y = {1, 2, 4, 3};
  const Row z = {2, 1, 4, 3};
  const double xy = spearman(x, y);
  const double xz = spearman(x, z);
  const double yz = spearman(y, z);
  EXPECT_NEAR(partial_spearman(x, y, z), (xy - xz * yz) / std::sqrt((1 - xz * xz) * (1 - yz * yz)),
              1e-12);
  EXPECT_NEAR(xy, 0.8, 1e-12);
  EXPECT_TRUE(std::isnan(partial_spearman(x, y, x)));
}

TEST(CorrelationTest, RegretIsWhatTheBestOfTheFirstFewLacks) {
  const Row score = {9, 8, 7, 6};
  const Row truth = {70, 75, 80, 60};
  EXPECT_EQ(top_k_regret(score, truth, 1), 10);
  EXPECT_EQ(top_k_regret(score, truth, 2), 5);
  EXPECT_EQ(top_k_regret(score, truth, 3), 0);
  EXPECT_EQ(top_k_regret(score, truth, 99), 0);
}

TEST(CorrelationTest, IntervalsHoldTheValueAndFollowFromTheSeed) {
  Row x;
  Row y;
  for (int i = 0; i < 60; ++i) {
    x.push_back(i);
    y.push_back(i + 25 * std::sin(7.0 * i));
  }
  const auto statistic = [&](const std::vector<size_t>& rows) {
    Row a;
    Row b;
    for (const size_t row : rows) {
      a.push_back(x[row]);
      b.push_back(y[row]);
    }
    return spearman(a, b);
  };
  const auto [low, high] = bootstrap_interval(60, statistic, 1);
  EXPECT_LT(low, spearman(x, y));
  EXPECT_GT(high, spearman(x, y));
  EXPECT_LT(high - low, 0.5);
  EXPECT_GT(high - low, 0.02);
  EXPECT_EQ(bootstrap_interval(60, statistic, 1), std::pair(low, high));
}

}  // namespace
}  // namespace adjoin::proxy
