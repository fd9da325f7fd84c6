#pragma once

// What a small network that was tried for a short while is worth: how much smaller it is, and how
// good beside the large one (N2N and ESNAC; VTCA makes both elastic).

#include <cstdint>
#include <vector>

namespace adjoin::search {

/// R = (1 - (1 - C)^a) A^b. With a = 2 and b = 1 it is C (2 - C) A, that of ESNAC.
struct ElasticReward {
  double a = 2;
  double b = 1;

  /// `compression`: 1 - small / large, of parameters, MACs or time, 0 to 1; `accuracy`: small /
  /// large, at least 0. Rises with both.
  double operator()(double compression, double accuracy) const;
};

/// How a network trains says early how good it will be (Ru et al. 2021): the sum of the mean
/// training losses of its epochs. Lower is better.
double training_speed(const std::vector<double>& epoch_losses);

/// The same of the last epochs alone; one is what the authors advise.
double training_speed_last(const std::vector<double>& epoch_losses, int64_t epochs);

/// A moving average in which the newest loss weighs `weight`, 0.9 in the authors' code.
double training_speed_average(const std::vector<double>& epoch_losses, double weight);

/// A speed as an accuracy for the reward: that of the large network over the small one's, at
/// most 1.
double speed_share(double large, double small);

}  // namespace adjoin::search
