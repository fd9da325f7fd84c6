#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "adjoin/tensor/torch.h"

namespace adjoin {

/// Compares the gradients of a weighted sum of `f()` with central differences in float64, for every
/// entry of every input (float64 leaves that `f` reads).
inline void expect_gradients_match(const std::vector<std::pair<std::string, torch::Tensor>>& inputs,
                                   const std::function<torch::Tensor()>& f,
                                   double tolerance = 1e-7) {
  constexpr double kStep = 1e-5;
  for (const auto& [name, input] : inputs) {
    torch::Tensor leaf = input;
    leaf.requires_grad_(true);
    leaf.mutable_grad().reset();
  }
  const auto out = f();
  const auto weights = torch::linspace(0.5, 1.5, out.numel(), torch::kFloat64).view(out.sizes());
  (out * weights).sum().backward();
  const auto value = [&] {
    const torch::NoGradGuard no_grad;
    return (f() * weights).sum().item<double>();
  };
  for (const auto& [name, input] : inputs) {
    ASSERT_TRUE(input.grad().defined()) << name << " got no gradient";
    const auto grad = input.grad().contiguous().view(-1);
    torch::NoGradGuard no_grad;
    auto flat = input.view(-1);
    double worst = 0;
    for (int64_t i = 0; i < flat.numel(); ++i) {
      double* entry = flat[i].data_ptr<double>();
      const double kept = *entry;
      *entry = kept + kStep;
      const double above = value();
      *entry = kept - kStep;
      const double below = value();
      *entry = kept;
      worst = std::max(worst, std::abs((above - below) / (2 * kStep) - grad[i].item<double>()));
    }
    EXPECT_LT(worst, tolerance * std::max(1.0, grad.abs().max().item<double>())) << name;
  }
}

}  // namespace adjoin
