#include "adjoin/search/expected_improvement.h"

#include <cmath>
#include <numbers>

namespace adjoin::search {
namespace {

constexpr double kFar = -1;        // below it phi(z) + z Phi(z) cancels
constexpr double kVeryFar = -1e4;  // below it so does what is left of it: it falls like z^-2

torch::Tensor density(const torch::Tensor& z) {
  return torch::exp(-0.5 * z.square()) / std::sqrt(2 * std::numbers::pi);
}

torch::Tensor distribution(const torch::Tensor& z) {
  return 0.5 * torch::erfc(-z / std::numbers::sqrt2);
}

/// log(phi(z) + z Phi(z)).
torch::Tensor log_gain(const torch::Tensor& z) {
  const auto near = z.clamp_min(kFar);
  const auto far = z.clamp(kVeryFar, kFar);
  const auto very_far = z.clamp_max(kVeryFar);
  // phi(z) (1 + z Phi(z) / phi(z)), the quotient by the scaled complementary error function.
  const auto scaled = torch::special_erfcx(-far / std::numbers::sqrt2);
  const auto rest = 1 + far * scaled * std::sqrt(std::numbers::pi / 2);
  const auto log_rest = torch::where(z > kVeryFar, torch::log(rest), -2 * torch::log(-very_far));
  const auto log_density = -0.5 * z.square() - 0.5 * std::log(2 * std::numbers::pi);
  return torch::where(z > kFar, torch::log(density(near) + near * distribution(near)),
                      log_density + log_rest);
}

}  // namespace

torch::Tensor expected_improvement(const torch::Tensor& mean, const torch::Tensor& deviation,
                                   double best) {
  const auto z = (mean - best) / deviation;
  return (deviation * (density(z) + z * distribution(z))).clamp_min(0);
}

torch::Tensor log_expected_improvement(const torch::Tensor& mean, const torch::Tensor& deviation,
                                       double best) {
  return torch::log(deviation) + log_gain((mean - best) / deviation);
}

}  // namespace adjoin::search
