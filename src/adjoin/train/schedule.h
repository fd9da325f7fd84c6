#pragma once

// The learning rate of every step, as a function of the step alone.

#include <cstdint>

#include "adjoin/train/config.h"

namespace adjoin::train {

class Schedule {
 public:
  Schedule(const ScheduleOptions& options, double lr, int64_t epochs, int64_t steps_per_epoch);

  int64_t steps() const { return epochs_ * steps_per_epoch_; }

  /// A linear rise over the warm-up, then what the schedule says for that time since the start, as
  /// in timm: the cosine has been falling all along. `step` counts from 0 over the whole run.
  double lr(int64_t step) const;

 private:
  ScheduleOptions options_;
  double lr_;
  int64_t epochs_;
  int64_t steps_per_epoch_;
};

}  // namespace adjoin::train
