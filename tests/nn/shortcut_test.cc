// Augmented shortcuts: the transform beside the matrix it stands for.
#include "adjoin/nn/shortcut.h"

#include "support/numeric_gradient.h"
#include "support/seeded_test.h"

namespace adjoin::nn {
namespace {

using ShortcutTest = SeededTest;

TEST_F(ShortcutTest, CirculantHasItsFirstColumnGivenAndTurnsItFurther) {
  const auto c = torch::tensor({1.0, 2.0, 3.0, 4.0}, torch::kFloat64).view({1, 1, 1, 4});
  const auto x = torch::tensor({1.0, 0.0, 2.0, -1.0}, torch::kFloat64);
  const auto wanted = torch::tensor({5.0, 7.0, 1.0, 7.0}, torch::kFloat64);
  EXPECT_TRUE(torch::allclose(circulant_product(x, c), wanted, 0, 1e-12));
  EXPECT_TRUE(torch::allclose(torch::matmul(circulant_matrix(c), x), wanted, 0, 1e-12));
}

TEST_F(ShortcutTest, TransformsEqualTheMatrixWithItsGradients) {
  for (const int64_t size : {1, 2, 3, 8, 12}) {
    for (const int64_t blocks : {1, 2, 5}) {
      auto weight = randn64({2, blocks, blocks, size}).requires_grad_(true);
      auto x = randn64({3, 4, blocks * size}).requires_grad_(true);
      const auto fast = circulant_product(x, weight);
      const auto dense = torch::matmul(x, circulant_matrix(weight).t());
      ASSERT_TRUE(torch::allclose(fast, dense, 0, 1e-10)) << size << " " << blocks;
      const auto factors = randn64(dense.sizes());
      const auto got = torch::autograd::grad({(fast * factors).sum()}, {x, weight});
      const auto wanted = torch::autograd::grad({(dense * factors).sum()}, {x, weight});
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_TRUE(torch::allclose(got[i], wanted[i], 0, 1e-10)) << size << " " << blocks;
      }
    }
  }
}

TEST_F(ShortcutTest, MatrixOfABlockIsCirculant) {
  const auto matrix = circulant_matrix(randn64({1, 2, 2, 5}));
  ASSERT_EQ(matrix.sizes(), (std::vector<int64_t>{10, 10}));
  const auto block = matrix.narrow(0, 0, 5).narrow(1, 5, 5);  // row 0, column 1
  EXPECT_TRUE(torch::equal(block.roll({1, 1}, {0, 1}), block));
}

TEST_F(ShortcutTest, BranchesAreAddedUpAfterTheirGelu) {
  const Shortcut dense{.kind = ShortcutKind::kDense, .branches = 3};
  Weights weights;
  weights.set("s.weight", randn64({12, 4}));
  weights.set("s.bias", randn64({12}));
  const auto x = randn64({2, 5, 4});
  auto wanted = torch::zeros_like(x);
  for (int64_t i = 0; i < 3; ++i) {
    wanted += torch::gelu(torch::linear(x, weights.at("s.weight").narrow(0, 4 * i, 4),
                                        weights.at("s.bias").narrow(0, 4 * i, 4)));
  }
  EXPECT_TRUE(torch::allclose(shortcut_branches(weights, "s.", dense, x), wanted, 0, 1e-12));
}

TEST_F(ShortcutTest, CirculantBranchesEqualDenseOnesOfTheSameMatrix) {
  const Shortcut circulant{.branches = 2, .blocks = 2};
  Shortcut dense = circulant;
  dense.kind = ShortcutKind::kDense;
  Weights weights, written_out;
  weights.set("s.weight", randn64({2, 2, 2, 3}));
  weights.set("s.bias", randn64({12}));
  written_out.set("s.weight", circulant_matrix(weights.at("s.weight")));
  written_out.set("s.bias", weights.at("s.bias"));
  const auto x = randn64({2, 5, 6});
  EXPECT_TRUE(torch::allclose(shortcut_branches(weights, "s.", circulant, x),
                              shortcut_branches(written_out, "s.", dense, x), 0, 1e-12));
}

TEST_F(ShortcutTest, HasTheGradientOfItsFormula) {
  Weights weights;
  weights.set("s.weight", randn64({2, 2, 2, 2}));
  weights.set("s.bias", randn64({8}));
  const auto x = randn64({2, 3, 4});
  expect_gradients_match(
      {{"x", x}, {"weight", weights.at("s.weight")}, {"bias", weights.at("s.bias")}},
      [&] { return shortcut_branches(weights, "s.", {.branches = 2, .blocks = 2}, x); });
}

}  // namespace
}  // namespace adjoin::nn
