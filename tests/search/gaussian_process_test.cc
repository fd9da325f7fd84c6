#include "adjoin/search/gaussian_process.h"

#include <cmath>

#include "adjoin/search/expected_improvement.h"
#include "support/gap.h"
#include "support/numeric_gradient.h"
#include "support/seeded_test.h"

namespace adjoin::search {
namespace {

class GaussianProcessTest : public SeededTest {
 protected:
  const torch::Tensor points = randn64({12, 3});
  const torch::Tensor values = points.sin().sum(1) + 4;
};

TEST_F(GaussianProcessTest, TheKernelIsSymmetricAndPositive) {
  const auto k = kernel(points, points, 0.7);
  EXPECT_LT(gap(k, k.t()), 1e-15);
  EXPECT_LT(gap(k.diagonal(), torch::ones({12}, torch::kFloat64)), 1e-12);
  EXPECT_GT(torch::linalg_eigvalsh(k).min().item<double>(), -1e-12);
  EXPECT_NEAR(kernel(points.narrow(0, 0, 1), points.narrow(0, 1, 1), 0.7).item<double>(),
              std::exp(-(points[0] - points[1]).square().sum().item<double>() / 0.98), 1e-12);
}

TEST_F(GaussianProcessTest, GoesThroughItsValuesWithoutNoise) {
  const GaussianProcess process(points, values, {1, 1e-9});
  const Posterior known = process.at(points);
  EXPECT_LT(gap(known.mean, values), 1e-5);
  EXPECT_LT(known.variance.max().item<double>(), 1e-5);
}

TEST_F(GaussianProcessTest, KnowsNothingFarFromItsPoints) {
  const GaussianProcess process(points, values, {0.5, 0.01});
  const Posterior far = process.at(points + 100);
  const double variance = values.var(/*unbiased=*/false).item<double>();
  EXPECT_LT(gap(far.mean, values.mean().expand({12})), 1e-9);
  EXPECT_LT(gap(far.variance, torch::full({12}, 1.01 * variance, torch::kFloat64)), 1e-9);
}

TEST_F(GaussianProcessTest, ValuesThatAreAllAlikeAreNoTrouble) {
  const GaussianProcess process(points, torch::full({12}, 3.0, torch::kFloat64), {1, 0.05});
  EXPECT_LT(gap(process.at(points).mean, torch::full({12}, 3.0, torch::kFloat64)), 1e-9);
}

TEST_F(GaussianProcessTest, LeavingOneOutIsFittingAllOthersAnew) {
  const ProcessOptions options{0.8, 0.05};
  double sum = 0;
  for (int64_t i = 0; i < 12; ++i) {
    const auto others = torch::cat({points.slice(0, 0, i), points.slice(0, i + 1)});
    const auto their = torch::cat({values.slice(0, 0, i), values.slice(0, i + 1)});
    const auto covariance =
        kernel(others, others, options.length) + options.noise * torch::eye(11, torch::kFloat64);
    const auto shared = kernel(others, points.narrow(0, i, 1), options.length);  // (11, 1)
    const auto solved = torch::linalg_solve(covariance, shared);
    const double mean = torch::matmul(solved.t(), their.unsqueeze(1)).item<double>();
    const double variance = 1 + options.noise - torch::matmul(solved.t(), shared).item<double>();
    const double off = values[i].item<double>() - mean;
    sum += -0.5 * std::log(2 * M_PI * variance) - off * off / (2 * variance);
  }
  EXPECT_NEAR(leave_one_out(points, values, options).item<double>(), sum / 12, 1e-9);
}

TEST_F(GaussianProcessTest, RowsThatFillUpABatchDoNotCount) {
  const ProcessOptions options{0.8, 0.05};
  const auto first = torch::cat({points.narrow(0, 0, 5), points.narrow(0, 0, 7)});
  const auto mask =
      torch::cat({torch::ones({5}, torch::kFloat64), torch::zeros({7}, torch::kFloat64)});
  const auto found =
      leave_one_out(torch::stack({first, points}), torch::stack({values, values}), options,
                    torch::stack({mask, torch::ones({12}, torch::kFloat64)}));
  ASSERT_EQ(found.sizes(), std::vector<int64_t>{2});
  EXPECT_NEAR(found[0].item<double>(),
              leave_one_out(points.narrow(0, 0, 5), values.narrow(0, 0, 5), options).item<double>(),
              1e-12);
  EXPECT_NEAR(found[1].item<double>(), leave_one_out(points, values, options).item<double>(),
              1e-12);
}

TEST_F(GaussianProcessTest, TheLikelihoodHasTheGradientOfItsDifferences) {
  const auto moved = points.clone();
  expect_gradients_match({{"points", moved}}, [&] {
    return leave_one_out(moved, values, {0.8, 0.05});
  });
}

class ExpectedImprovementTest : public SeededTest {
 protected:
  static torch::Tensor numbers(std::vector<double> list) {
    return torch::tensor(list, torch::kFloat64);
  }
};

TEST_F(ExpectedImprovementTest, IsTheMeanOfWhatIsBetter) {
  const auto draws = 1.3 + 0.7 * randn64({2'000'000});
  const double mean = (draws - 1.5).clamp_min(0).mean().item<double>();
  EXPECT_NEAR(expected_improvement(numbers({1.3}), numbers({0.7}), 1.5).item<double>(), mean, 2e-3);
}

TEST_F(ExpectedImprovementTest, IsNeverNegativeAndVanishesWithCertainty) {
  const auto mean = randn64({1000}) * 5;
  const auto deviation = torch::rand({1000}, torch::kFloat64) + 1e-9;
  EXPECT_GE(expected_improvement(mean, deviation, 0.3).min().item<double>(), 0);
  EXPECT_LT(expected_improvement(numbers({0.2}), numbers({1e-8}), 0.3).item<double>(), 1e-300);
  EXPECT_NEAR(expected_improvement(numbers({0.8}), numbers({1e-8}), 0.3).item<double>(), 0.5, 1e-9);
}

TEST_F(ExpectedImprovementTest, GrowsWithMeanAndWithDoubt) {
  const auto one = numbers({1, 1, 1});
  const auto by_mean = expected_improvement(numbers({-1, 0, 1}), one, 0.5);
  const auto by_doubt = expected_improvement(0 * one, numbers({0.1, 1, 3}), 0.5);
  for (const auto& rising : {by_mean, by_doubt}) {
    EXPECT_LT(rising[0].item<double>(), rising[1].item<double>());
    EXPECT_LT(rising[1].item<double>(), rising[2].item<double>());
  }
}

TEST_F(ExpectedImprovementTest, ItsLogarithmIsThatWhereBothCanBeComputed) {
  const auto mean = torch::linspace(-6, 6, 200, torch::kFloat64);
  const auto deviation = torch::full({200}, 0.9, torch::kFloat64);
  const auto plain = torch::log(expected_improvement(mean, deviation, 0));
  EXPECT_LT(gap(log_expected_improvement(mean, deviation, 0), plain), 1e-5);
}

TEST_F(ExpectedImprovementTest, ItsLogarithmTellsApartWhatIsHopeless) {
  const auto mean = numbers({-1e8, -1e7, -1e5, -2e4, -9e3, -1e3, -100, -40, -5});
  const auto found = log_expected_improvement(mean, torch::ones_like(mean), 0);
  EXPECT_TRUE(torch::isfinite(found).all().item<bool>());
  EXPECT_GT((found.slice(0, 1) - found.slice(0, 0, -1)).min().item<double>(), 0);
  EXPECT_EQ(expected_improvement(mean, torch::ones_like(mean), 0)[6].item<double>(), 0);
  // phi(z) / z^2 far out
  EXPECT_NEAR(found[5].item<double>(), -0.5e6 - 0.5 * std::log(2 * M_PI) - 2 * std::log(1e3), 1e-5);
}

}  // namespace
}  // namespace adjoin::search
