#include "adjoin/analysis/token_rank.h"

#include <cmath>

#include "support/gap.h"
#include "support/seeded_test.h"

namespace adjoin::analysis {
namespace {

class TokenRankTest : public SeededTest {};

TEST_F(TokenRankTest, TheResidualOfTokensThatAreAllAlikeIsNothing) {
  const auto x = randn64({1, 1, 7}).expand({2, 5, 7});
  EXPECT_LT(gap(residual(x), torch::zeros_like(x)), 1e-15);
  EXPECT_NEAR(token_cosine(x)[1].item<double>(), 1, 1e-12);
  EXPECT_NEAR(effective_rank(x)[0].item<double>(), 1, 1e-6);
}

TEST_F(TokenRankTest, TheMeanIsTheNearestRowInTheFrobeniusNorm) {
  const auto x = randn64({6, 4});
  const auto best = frobenius(residual(x)).item<double>();
  for (int i = 0; i < 200; ++i) {
    const auto other = x - (x.mean(0) + 0.1 * randn64({4}));
    EXPECT_LE(best, frobenius(other).item<double>());
  }
}

TEST_F(TokenRankTest, TheCompositeFormIsTheRootOfColumnTimesRow) {
  const auto x = torch::tensor({{1.0, -2.0}, {3.0, 4.0}}, torch::kFloat64);
  EXPECT_EQ(column_norm(x).item<double>(), 6);
  EXPECT_EQ(row_norm(x).item<double>(), 7);
  EXPECT_DOUBLE_EQ(composite_norm(x).item<double>(), std::sqrt(42.0));
}

TEST_F(TokenRankTest, TheCompositeFormBreaksTheTriangleInequality) {
  const auto a = torch::tensor({{0.0, 1.547}, {0.0, 1.581}}, torch::kFloat64);
  const auto b = torch::tensor({{0.0, 0.0}, {1.336, 1.332}}, torch::kFloat64);
  const double ratio =
      (composite_norm(a + b) / (composite_norm(a) + composite_norm(b))).item<double>();
  EXPECT_NEAR(ratio, 1.0586, 2e-4);  // of matrices printed in four digits
}

TEST_F(TokenRankTest, TheCompositeFormIsSubmultiplicativeAndHomogeneous) {
  for (int i = 0; i < 500; ++i) {
    const auto a = randn64({4, 5}), b = randn64({5, 3});
    EXPECT_LE(composite_norm(torch::matmul(a, b)).item<double>(),
              (composite_norm(a) * composite_norm(b)).item<double>() * (1 + 1e-12));
    EXPECT_NEAR(composite_norm(-3 * a).item<double>(), 3 * composite_norm(a).item<double>(), 1e-12);
  }
}

TEST_F(TokenRankTest, TheCosineIsTheMeanOverAllPairsOfDifferentTokens) {
  const auto x = randn64({2, 5, 3});
  double sum = 0;
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      if (i != j) sum += torch::cosine_similarity(x[1][i], x[1][j], 0).item<double>() / 20;
    }
  }
  EXPECT_NEAR(token_cosine(x)[1].item<double>(), sum, 1e-12);
}

TEST_F(TokenRankTest, TheEffectiveRankOfAnOrthogonalMatrixIsItsSize) {
  const auto q = std::get<0>(torch::linalg_qr(randn64({9, 9})));
  EXPECT_NEAR(effective_rank(q.narrow(0, 0, 6)).item<double>(), 6, 1e-9);
}

TEST_F(TokenRankTest, SingularValuesAreThoseOfTheDecomposition) {
  for (const auto& shape : {std::vector<int64_t>{3, 7, 4}, {3, 4, 7}}) {
    const auto x = randn64(shape);
    EXPECT_LT(gap(singular_values(x), torch::linalg_svdvals(x)), 1e-7);
  }
}

}  // namespace
}  // namespace adjoin::analysis
