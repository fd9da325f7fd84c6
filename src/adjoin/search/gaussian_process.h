#pragma once

// What is to be expected of a network from those that were tried: a Gaussian process over points
// that stand for networks (Cao et al. 2019, ESNAC; Rasmussen and Williams 2006).
//
// Points are (n, d), values (n), float64. Everything is differentiable by the points.

#include "adjoin/tensor/torch.h"

namespace adjoin::search {

struct ProcessOptions {
  double length = 0.1;  ///< of the kernel exp(-|a - b|^2 / (2 length^2))
  double noise = 0.05;  ///< variance of a value about what its network is worth
};

/// (.., n, d), (.., m, d) -> (.., n, m)
torch::Tensor kernel(const torch::Tensor& a, const torch::Tensor& b, double length);

/// What is expected of points, and how uncertain that is, the noise of a value included.
struct Posterior {
  torch::Tensor mean;      ///< (m)
  torch::Tensor variance;  ///< (m)
};

class GaussianProcess {
 public:
  /// `values` have mean 0 and variance 1 for the process; what it says is in their own unit.
  GaussianProcess(torch::Tensor points, const torch::Tensor& values, const ProcessOptions& options);

  Posterior at(const torch::Tensor& points) const;

 private:
  ProcessOptions options_;
  torch::Tensor points_;
  torch::Tensor factor_;   // of the covariance, lower triangular
  torch::Tensor weights_;  // its inverse times the values
  double mean_ = 0;
  double deviation_ = 1;
};

/// The mean log likelihood of every value by a process that knows all others (equations 5.10 to
/// 5.12), from one inverse. Of values as they are. `is_there` (.., n): ones, and zeros for rows
/// that only fill up a batch.
///
/// (.., n, d), (.., n) -> (..)
torch::Tensor leave_one_out(const torch::Tensor& points, const torch::Tensor& values,
                            const ProcessOptions& options, const torch::Tensor& is_there = {});

/// Values with mean 0 and variance 1; those of a variance of 0 are only moved.
struct Standardised {
  torch::Tensor values;
  double mean = 0;
  double deviation = 1;
};
Standardised standardised(const torch::Tensor& values);

}  // namespace adjoin::search
