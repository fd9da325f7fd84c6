#pragma once

// A run from its first step to its last, through checkpoints, signals and crashes. Killed at any
// moment and started again from its checkpoint, it ends with the same weights (on a CPU bit for
// bit) and the same log but for times.

#include <functional>
#include <string>
#include <vector>

#include "adjoin/core/signals.h"
#include "adjoin/train/job.h"
#include "adjoin/train/observer.h"
#include "adjoin/train/run_folder.h"

namespace adjoin::train {

struct RunResult {
  /// Of the last epoch's weights (the average where one is kept), the large network first.
  std::vector<Evaluation> evaluations;
  double best_top1 = 0;  ///< of the large network
  int64_t best_epoch = 0;
  int64_t epochs = 0;  ///< that were trained
  double seconds = 0;  ///< of training and evaluation, over all parts, up to the last checkpoint
  int stopped_by = 0;  ///< the signal that ended it early, after a checkpoint; 0: it is complete
};

struct RunOptions {
  Group* group = nullptr;       ///< of several processes
  RunFolder* folder = nullptr;  ///< of the first process; null in the others
  std::string checkpoint;       ///< where all processes find last.ckpt; empty: start
  std::vector<Observer*> observers;
  const StopSignal* stop = nullptr;
};

/// Error(kNumeric) when a step is not finite, Error(kData) when too many images cannot be read,
/// Error(kInternal) with a batch size to try when memory runs out: the last checkpoint stays.
RunResult run(Job& job, const RunOptions& options);

}  // namespace adjoin::train
