#include "adjoin/train/schedule.h"

#include <cmath>
#include <numbers>

namespace adjoin::train {

Schedule::Schedule(const ScheduleOptions& options, double lr, int64_t epochs,
                   int64_t steps_per_epoch)
    : options_(options), lr_(lr), epochs_(epochs), steps_per_epoch_(steps_per_epoch) {}

double Schedule::lr(int64_t step) const {
  const double epoch = static_cast<double>(step) / static_cast<double>(steps_per_epoch_);
  if (epoch < options_.warmup_epochs) {
    return options_.warmup_lr + (lr_ - options_.warmup_lr) * epoch / options_.warmup_epochs;
  }
  switch (options_.sched) {
    case ScheduleKind::kConstant: return lr_;
    case ScheduleKind::kStep:
      return lr_ * std::pow(options_.decay_rate, std::floor(epoch / options_.decay_epochs));
    case ScheduleKind::kCosine: break;
  }
  const double part = epoch / static_cast<double>(epochs_);
  return options_.min_lr + (lr_ - options_.min_lr) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

}  // namespace adjoin::train
