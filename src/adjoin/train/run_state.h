#pragma once

// Where a run stands, besides its tensors: what a checkpoint keeps as JSON.

#include <string>
#include <vector>

#include "adjoin/train/evaluate.h"

namespace adjoin::train {

struct RunState {
  int64_t version = 2;
  int64_t epoch = 0;
  int64_t step = 0;  ///< steps of the epoch that are done
  int64_t steps_per_epoch = 0;
  int64_t steps_taken = 0;
  double best_top1 = 0;
  int64_t best_epoch = 0;
  std::vector<Evaluation> evaluations;  ///< of the last epoch that is complete, per network
  bool is_complete = false;             ///< also before its last epoch, when it was good enough
  double epoch_loss = 0;                ///< sum over the images of this epoch that were reported
  int64_t epoch_images = 0;
  std::vector<int64_t> unreadable;  ///< training images met so far that cannot be read
  std::vector<int64_t> unreadable_val;
  std::string summary;  ///< lines of summary.csv without its heading
  int64_t log_bytes = 0;
  double seconds = 0;
};

template <class Visitor>
void fields(Visitor& visit, RunState& state) {
  constexpr Range kCount{0, 1e15};
  visit("version", state.version, Range{2, 2});
  visit("epoch", state.epoch, kCount);
  visit("step", state.step, kCount);
  visit("steps_per_epoch", state.steps_per_epoch, kCount);
  visit("steps_taken", state.steps_taken, kCount);
  visit("best_top1", state.best_top1, Range{0, 100});
  visit("best_epoch", state.best_epoch, kCount);
  visit("evaluations", state.evaluations);
  visit("is_complete", state.is_complete);
  visit("epoch_loss", state.epoch_loss);
  visit("epoch_images", state.epoch_images, kCount);
  visit("unreadable", state.unreadable, kCount);
  visit("unreadable_val", state.unreadable_val, kCount);
  visit("summary", state.summary);
  visit("log_bytes", state.log_bytes, kCount);
  visit("seconds", state.seconds, Range{0, 1e15});
}

}  // namespace adjoin::train
