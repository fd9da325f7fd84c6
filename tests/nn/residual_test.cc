// The fused sum and norm beside LibTorch's own functions: values, gradients, gradients of
// gradients.
#include "adjoin/nn/residual.h"

#include "support/numeric_gradient.h"
#include "support/seeded_test.h"

namespace adjoin::nn {
namespace {

/// What a stream may carry, and the same formula by LibTorch's functions.
struct Case {
  std::string name;
  bool has_branch = true;
  bool has_bias = true;
  bool has_scale = false;
  bool is_reordered = false;
};

class ResidualTest : public SeededTest, public testing::WithParamInterface<Case> {
 protected:
  static constexpr int64_t kImages = 3;
  static constexpr int64_t kTokens = 5;
  static constexpr int64_t kWidth = 7;

  void SetUp() override {
    make("x", {kImages, kTokens, kWidth});
    make("norm.weight", {kWidth});
    make("norm.bias", {kWidth});
    if (GetParam().has_branch) make("branch", {kImages, kTokens, kWidth});
    if (GetParam().has_bias) make("bias", {kWidth});
    if (GetParam().has_scale) scale = torch::tensor({0.0, 2.0, 1.25}, torch::kFloat64);
    if (GetParam().is_reordered) {
      order.tokens = torch::tensor({3, 0, 4, 1, 2}, torch::kInt32);
      order.places = torch::tensor({1, 3, 4, 0, 2}, torch::kInt32);
    }
  }

  void make(const std::string& name, at::IntArrayRef shape) {
    weights.set(name, randn64(shape));
    inputs.emplace_back(name, weights.at(name));
  }

  Stream stream() const {
    Stream made{weights.at("x")};
    if (GetParam().has_branch) {
      made.branch = Branch{weights.at("branch"), weights.find("bias"), scale, order};
    }
    return made;
  }

  /// The sum and the norm, each weighted, so that both carry gradients.
  torch::Tensor fused() const {
    Stream x = stream();
    const auto norm = next_norm(x, weights, "norm.", 1e-5, {}, order);
    return torch::cat({norm, settled(x) * 0.3}, 1);
  }

  torch::Tensor plain() const {
    auto sum = weights.at("x");
    if (GetParam().has_branch) {
      auto added = weights.at("branch");
      if (GetParam().has_bias) added = added + weights.at("bias");
      if (GetParam().has_scale) added = added * scale.view({-1, 1, 1});
      if (GetParam().is_reordered) added = added.index_select(1, order.places);
      sum = sum + added;
    }
    auto norm =
        torch::layer_norm(sum, {kWidth}, weights.at("norm.weight"), weights.at("norm.bias"), 1e-5);
    if (GetParam().is_reordered) norm = norm.index_select(1, order.tokens);
    return torch::cat({norm, sum * 0.3}, 1);
  }

  Weights weights;
  torch::Tensor scale;
  TokenOrder order;
  std::vector<std::pair<std::string, torch::Tensor>> inputs;
};

TEST_P(ResidualTest, IsTheFormula) {
  EXPECT_TRUE(torch::allclose(fused(), plain(), 0, 1e-12));
  Weights narrow;
  for (const auto& [name, tensor] : inputs) narrow.set(name, tensor.to(torch::kFloat32));
  const auto wanted = plain();
  weights = narrow;
  if (scale.defined()) scale = scale.to(torch::kFloat32);
  EXPECT_LT((fused() - wanted).abs().max().item<double>(), 2e-6);
}

TEST_P(ResidualTest, HasTheGradientOfItsFormula) {
  expect_gradients_match(inputs, [&] { return fused(); });
}

TEST_P(ResidualTest, HasTheGradientsOfLibTorchOnManyRowsAndInFloat32) {
  for (auto& [name, tensor] : inputs) {
    const bool is_stream = tensor.dim() == 3;
    tensor =
        torch::randn(is_stream ? std::vector<int64_t>{64, kTokens, 384} : std::vector<int64_t>{384})
            .requires_grad_();
    weights.set(name, tensor);
  }
  if (scale.defined()) scale = torch::rand(64);
  std::vector<torch::Tensor> leaves;
  for (const auto& input : inputs) leaves.push_back(input.second);
  const auto gradients = [&](const torch::Tensor& out) {
    return torch::autograd::grad({(out * torch::linspace(-1, 1, 384)).sum()}, leaves);
  };
  Stream x = stream();
  const auto norm = next_norm(x, weights, "norm.", 1e-5, {}, order);
  const auto got = gradients(torch::cat({norm, settled(x)}, 1));
  auto sum = settled(stream());
  auto plain_norm =
      torch::layer_norm(sum, {384}, weights.at("norm.weight"), weights.at("norm.bias"), 1e-5);
  if (order.tokens.defined()) plain_norm = plain_norm.index_select(1, order.tokens);
  const auto wanted = gradients(torch::cat({plain_norm, sum}, 1));
  for (size_t i = 0; i < leaves.size(); ++i) {
    const double size = wanted[i].abs().max().item<double>();
    EXPECT_LT((got[i] - wanted[i]).abs().max().item<double>(), 1e-5 * size) << inputs[i].first;
  }
}

TEST_P(ResidualTest, ItsGradientCanBeDifferentiated) {
  const auto twice = [&](const torch::Tensor& out) {
    std::vector<torch::Tensor> leaves;
    for (const auto& input : inputs) leaves.push_back(input.second);
    const auto first = torch::autograd::grad({out.sin().sum()}, leaves, {}, true, true);
    torch::Tensor total = torch::zeros({}, torch::kFloat64);
    for (const auto& grad : first) total = total + grad.square().sum();
    return torch::autograd::grad({total}, leaves);
  };
  for (auto& input : inputs) input.second.requires_grad_();
  const auto got = twice(fused());
  const auto wanted = twice(plain());
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_TRUE(torch::allclose(got[i], wanted[i], 1e-9, 1e-9)) << inputs[i].first;
  }
}

INSTANTIATE_TEST_SUITE_P(Streams, ResidualTest,
                         testing::Values(Case{"WithoutBranch", false, false, false, false},
                                         Case{"WithoutBias", true, false, false, false},
                                         Case{"Whole", true, true, false, false},
                                         Case{"WithDropPath", true, true, true, false},
                                         Case{"Reordered", true, true, true, true}),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace adjoin::nn
