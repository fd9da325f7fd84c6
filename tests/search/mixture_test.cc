#include "adjoin/search/mixture.h"

#include <gtest/gtest.h>

#include <cmath>

#include "adjoin/models/forward.h"
#include "adjoin/models/slice.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/overrides.h"
#include "support/gap.h"
#include "support/random_weights.h"

namespace adjoin::search {
namespace {

torch::Tensor numbers(std::vector<double> values) { return torch::tensor(values, torch::kFloat64); }

/// A network with what a mixture of it needs.
struct Case {
  explicit Case(const std::string& model, std::vector<int64_t> candidates = {})
      : spec(catalog_spec(model)),
        space(spec, std::move(candidates)),
        mixture(space),
        large(random_weights(spec, torch::kFloat64)),
        images(torch::randn({3, spec.in_chans, spec.img_size, spec.img_size}, torch::kFloat64)) {
    Weights leaves;
    for (const auto& [name, tensor] : large) {
      leaves.set(name, tensor.requires_grad_(true));
    }
    large = leaves;
  }

  torch::Tensor one_pass(const torch::Tensor& shares) const {
    const Weights widest = models::views(mixture.widest(), large);
    return models::forward(mixture.widest().spec, mixture.weights(widest, shares), images).logits();
  }

  std::vector<torch::Tensor> gradients(const torch::Tensor& logits, const torch::Tensor& with) {
    std::vector<torch::Tensor> inputs = {with};
    for (const auto& [name, tensor] : large) inputs.push_back(tensor);
    const auto weights = torch::cos(torch::arange(logits.numel(), torch::kFloat64) + 1);
    return torch::autograd::grad({(logits.flatten() * weights).sum()}, inputs, {}, true, false,
                                 /*allow_unused=*/true);
  }

  ModelSpec spec;
  Space space;
  Mixture mixture;
  Weights large;
  torch::Tensor images;
};

class MixtureTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { torch::manual_seed(5); }
};
INSTANTIATE_TEST_SUITE_P(Minis, MixtureTest,
                         testing::Values("vit_mini_32", "t2t_mini_32", "swin_mini_32",
                                         "vit_mini_28"),
                         [](const auto& p) { return std::string(p.param); });

TEST_P(MixtureTest, OnePassIsTheSumOverCandidatesInOutputAndAllGradients) {
  Case one(GetParam());
  const auto eta = torch::randn({one.mixture.blocks(), one.mixture.candidates()}, torch::kFloat64)
                       .requires_grad_(true);
  const auto shares = softened(eta, torch::zeros_like(eta), torch::ones({}, torch::kFloat64),
                               one.mixture.is_legal());
  EXPECT_LT(gap(shares.sum(1), torch::ones(one.mixture.blocks(), torch::kFloat64)), 1e-12);
  const auto quick = one.one_pass(shares);
  const auto in_full = explicit_mixture(one.space, one.large, one.images, shares);
  EXPECT_GT(quick.abs().max().item<double>(), 1e-3);
  EXPECT_LT(gap(quick, in_full), 1e-9);
  const auto a = one.gradients(quick, eta);
  const auto b = one.gradients(in_full, eta);
  EXPECT_GT(a[0].abs().max().item<double>(), 1e-6);
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].defined(), b[i].defined()) << i;
    if (!a[i].defined()) continue;
    EXPECT_LT(gap(a[i], b[i]), 1e-9) << i;
  }
}

TEST_P(MixtureTest, OneCandidateAloneIsTheSmallNetworkItself) {
  Case one(GetParam());
  for (int64_t j = 0; j < one.mixture.candidates(); ++j) {
    auto shares = torch::zeros({one.mixture.blocks(), one.mixture.candidates()}, torch::kFloat64);
    std::vector<size_t> picks;
    for (size_t i = 0; i < one.space.blocks(); ++i) {
      // Another candidate in every block.
      picks.push_back((static_cast<size_t>(j) + i) % one.space.alphas()[i].size());
      shares[static_cast<int64_t>(i)][static_cast<int64_t>(picks.back())] = 1;
    }
    const Derived small = derive(one.spec, one.space.choice(picks), Geometry::kKept);
    const auto alone =
        models::forward(small.spec, models::views(small, one.large), one.images).logits();
    EXPECT_LT(gap(one.one_pass(shares), alone), 1e-9);
  }
}

TEST(MixtureTest, BlocksWithFewerCandidatesUseTheirOwn) {
  Case one("swin_mini_32", {1, 2, 4, 8});  // stage 0 has 4 heads
  EXPECT_EQ(one.space.alphas().front(), (std::vector<int64_t>{1, 2, 4}));
  EXPECT_EQ(one.space.alphas().back(), (std::vector<int64_t>{1, 2, 4, 8}));
  EXPECT_FALSE(one.mixture.is_legal()[0][3].item<bool>());
  const auto zero = torch::zeros({one.mixture.blocks(), 4}, torch::kFloat64);
  const auto shares =
      softened(zero, zero, torch::ones({}, torch::kFloat64), one.mixture.is_legal());
  EXPECT_EQ(shares[0][3].item<double>(), 0);
  EXPECT_NEAR(shares[0][0].item<double>(), 1.0 / 3, 1e-15);
  EXPECT_LT(gap(one.one_pass(shares), explicit_mixture(one.space, one.large, one.images, shares)),
            1e-9);
}

TEST(MixtureTest, WithoutTheWholeBlockAmongCandidatesNothingElseIsRead) {
  Case one("vit_mini_28", {2, 4});
  EXPECT_EQ(placed_blocks(one.mixture.widest().spec)[0].block->heads, 4);
  const auto shares = torch::full({4, 2}, 0.5, torch::kFloat64);
  EXPECT_LT(gap(one.one_pass(shares), explicit_mixture(one.space, one.large, one.images, shares)),
            1e-9);
}

// Values of methods.md C.
TEST(GumbelTest, HasTheValuesOfTheMethod) {
  EXPECT_LT(gap(gumbel(numbers({0.1, 0.5, 0.9})), numbers({-0.83403245, 0.36651292, 2.25036733})),
            1e-8);
  EXPECT_TRUE(gumbel(numbers({0, 1})).isfinite().all().item<bool>());
  EXPECT_TRUE(gumbel(torch::tensor({0.F, 1.F})).isfinite().all().item<bool>());
  const auto eta = numbers({0.2, 0.4, 0.6}).unsqueeze(0);
  const auto noise = gumbel(numbers({0.1, 0.5, 0.9})).unsqueeze(0);
  const auto all = torch::ones({1, 3}, torch::kBool);
  const auto at = [&](double tau) {
    return softened(eta, noise, torch::tensor(tau, torch::kFloat64), all)[0];
  };
  EXPECT_LT(gap(at(15), numbers({0.29767599, 0.32680881, 0.3755152})), 1e-8);
  EXPECT_LT(gap(at(5), numbers({0.23090669, 0.30555286, 0.46354045})), 1e-8);
  EXPECT_LT(gap(at(1), numbers({0.02655319, 0.10773722, 0.8657096})), 1e-8);
  EXPECT_LT(gap(at(1e-3), numbers({0, 0, 1})), 1e-12);
}

/// Chi-square of how often each candidate is the largest of eta + noise, against softmax(eta).
double chi_square(const torch::Tensor& eta, const torch::Tensor& noise) {
  const auto draws = static_cast<double>(noise.size(0));
  const auto expected = eta.softmax(0) * draws;
  const auto counts = torch::bincount((eta + noise).argmax(1), {}, eta.size(0));
  return ((counts - expected).square() / expected).sum().item<double>();
}

TEST(GumbelTest, PicksCandidatesAsOftenAsTheirProbabilitySaysAndGaussianNoiseDoesNot) {
  torch::manual_seed(11);
  constexpr double kCritical = 16.27;  // of 3 degrees of freedom, at 0.001
  const auto eta = numbers({1.2, 0.3, -0.5, 0});
  const auto uniform = torch::rand({200000, 4}, torch::kFloat64);
  EXPECT_LT(chi_square(eta, gumbel(uniform)), kCritical);
  EXPECT_GT(chi_square(eta, torch::randn({200000, 4}, torch::kFloat64)), 10 * kCritical);
}

}  // namespace
}  // namespace adjoin::search
