#include "adjoin/search/gaussian_process.h"

#include <cmath>
#include <numbers>

namespace adjoin::search {
torch::Tensor kernel(const torch::Tensor& a, const torch::Tensor& b, double length) {
  const auto squares = a.square().sum(-1).unsqueeze(-1) + b.square().sum(-1).unsqueeze(-2) -
                       2 * torch::matmul(a, b.mT());
  return torch::exp(-squares.clamp_min(0) / (2 * length * length));
}

Standardised standardised(const torch::Tensor& values) {
  const double mean = values.mean().item<double>();
  const double found = values.std(/*unbiased=*/false).item<double>();
  const double deviation = found > 0 ? found : 1;
  return {(values - mean) / deviation, mean, deviation};
}

GaussianProcess::GaussianProcess(torch::Tensor points, const torch::Tensor& values,
                                 const ProcessOptions& options)
    : options_(options), points_(std::move(points)) {
  const Standardised scaled = standardised(values);
  mean_ = scaled.mean;
  deviation_ = scaled.deviation;
  const auto noise = torch::eye(points_.size(0), points_.options()) * options.noise;
  factor_ = torch::linalg_cholesky(kernel(points_, points_, options.length) + noise);
  weights_ = torch::cholesky_solve(scaled.values.unsqueeze(1), factor_);  // (n, 1)
}

Posterior GaussianProcess::at(const torch::Tensor& points) const {
  const auto shared = kernel(points_, points, options_.length);  // (n, m)
  const auto known = torch::linalg_solve_triangular(factor_, shared, /*upper=*/false);
  const auto variance = 1 + options_.noise - known.square().sum(0);
  return {torch::matmul(shared.t(), weights_).squeeze(1) * deviation_ + mean_,
          variance.clamp_min(1e-12) * (deviation_ * deviation_)};
}

torch::Tensor leave_one_out(const torch::Tensor& points, const torch::Tensor& values,
                            const ProcessOptions& options, const torch::Tensor& is_there) {
  const auto mask = is_there.defined() ? is_there : torch::ones_like(values);
  // What is not there has to do with nothing but itself.
  const auto shared =
      kernel(points, points, options.length) * mask.unsqueeze(-1) * mask.unsqueeze(-2);
  const auto covariance = shared + torch::diag_embed(1 - mask + options.noise);
  const auto inverse = torch::cholesky_inverse(torch::linalg_cholesky(covariance));
  const auto precision = inverse.diagonal(0, -2, -1);
  const auto missed = torch::matmul(inverse, values.unsqueeze(-1)).squeeze(-1) / precision;
  const auto likelihood = 0.5 * torch::log(precision) - 0.5 * missed.square() * precision;
  return (likelihood * mask).sum(-1) / mask.sum(-1) - 0.5 * std::log(2 * std::numbers::pi);
}

}  // namespace adjoin::search
