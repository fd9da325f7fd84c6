#include "adjoin/search/reward.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace adjoin::search {

double ElasticReward::operator()(double compression, double accuracy) const {
  const double kept = std::clamp(1 - compression, 0.0, 1.0);
  return (1 - std::pow(kept, a)) * std::pow(std::max(accuracy, 0.0), b);
}

double training_speed(const std::vector<double>& epoch_losses) {
  return std::accumulate(epoch_losses.begin(), epoch_losses.end(), 0.0);
}

double training_speed_last(const std::vector<double>& epoch_losses, int64_t epochs) {
  const auto count = std::min(epochs, std::ssize(epoch_losses));
  return std::accumulate(epoch_losses.end() - count, epoch_losses.end(), 0.0);
}

double training_speed_average(const std::vector<double>& epoch_losses, double weight) {
  double average = epoch_losses.empty() ? 0 : epoch_losses.front();
  for (size_t i = 1; i < epoch_losses.size(); ++i) {
    average = (1 - weight) * average + weight * epoch_losses[i];
  }
  return average;
}

double speed_share(double large, double small) {
  return small > 0 ? std::clamp(large / small, 0.0, 1.0) : 1;
}

}  // namespace adjoin::search
