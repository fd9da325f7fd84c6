#pragma once

// What a run would need, found by taking a few of its steps; nothing is written.

#include "adjoin/core/json.h"
#include "adjoin/train/job.h"

namespace adjoin::train {

struct Estimate {
  int64_t images = 0;  ///< for training
  int64_t steps_per_epoch = 0;
  double step_seconds = 0;  ///< median of the steps that were taken
  double evaluation_seconds = 0;
  double seconds = 0;            ///< of the whole run
  int64_t state_bytes = 0;       ///< weights, gradients, optimizer, average
  int64_t activation_bytes = 0;  ///< of one part of a batch, counted in float32
  int64_t peak_bytes = 0;        ///< of this process, in main memory, after the steps
};

/// Error(kInternal) with a batch size to try when memory runs out.
Estimate estimate(Job& job, Group& group);

Json to_json(const Estimate& estimate);

}  // namespace adjoin::train
