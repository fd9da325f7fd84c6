#pragma once

// What a method of several trainings needs of the program it runs in: how a job is trained, when to
// stop, and who listens.

#include <functional>
#include <string>
#include <vector>

#include "adjoin/core/progress.h"
#include "adjoin/core/signals.h"
#include "adjoin/train/job.h"
#include "adjoin/train/run.h"

namespace adjoin::train {

struct Stages {
  std::string folder;  ///< of the whole
  const Launch& launch;
  const StopSignal& stop;
  ProgressStyle progress = ProgressStyle::kAuto;
  /// Trains in a folder. Stopped{signal} once a signal came and what was done is kept.
  using Run = std::function<RunResult(Job job, const std::string& folder)>;
  Run run;    ///< a run that began there goes on where the user says so
  Run go_on;  ///< a run that began there goes on
  std::function<void(const std::vector<std::string>& notes)> note;  ///< tells the user

  bool is_first() const { return launch.rank == 0; }  ///< of several processes
};

}  // namespace adjoin::train
