#pragma once

// A look inside the networks of a training every few epochs, for the log and the report.

#include "adjoin/analysis/inspect.h"
#include "adjoin/train/job.h"

namespace adjoin::analysis {

class InspectObserver : public train::Observer {
 public:
  /// Every `interval` epochs, and after the last.
  InspectObserver(Sample sample, int64_t interval)
      : sample_(std::move(sample)), interval_(interval) {}

  /// {"inspect": {"batch", "networks": [{"name", "layers": [..]}]}}
  Json epoch_fields(const train::EpochEnd& end) override;

 private:
  Sample sample_;
  int64_t interval_;
};

/// Adds one to a job whose config has an `inspect_interval`.
void add_inspect_observer(train::Job& job);

}  // namespace adjoin::analysis
