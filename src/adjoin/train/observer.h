#pragma once

// Who watches a run: the log, the progress bar, diagnostics.

#include <string>

#include "adjoin/core/json.h"
#include "adjoin/train/evaluate.h"
#include "adjoin/train/trainer.h"

namespace adjoin::train {

/// A point in a run.
struct Position {
  int64_t epoch = 0;
  int64_t epochs = 0;
  int64_t step = 0;  ///< steps of this epoch that are done
  int64_t steps = 0;

  int64_t steps_done() const { return epoch * steps + step; }
  int64_t steps_in_all() const { return epochs * steps; }
};

/// Every log_interval steps and at the end of an epoch.
struct StepReport {
  Metrics metrics;
  double lr = 0;
  double images_per_second = 0;
};

struct EpochReport {
  double train_loss = 0;
  double lr = 0;
  std::vector<Evaluation> evaluations;  ///< of the networks, the large one first
  bool is_best = false;                 ///< of the large one
  double seconds = 0;                   ///< of the run so far, all its attempts
};

/// What there is to see when an epoch is over.
struct EpochEnd {
  Position position;
  bool is_last = false;  ///< of the run, which may end early
  const Trainer& trainer;
  const std::vector<EvaluatedNetwork>& networks;  ///< that were judged, the large one first
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_step(const Position& /*position*/) {}
  virtual void on_report(const Position& /*position*/, const StepReport& /*report*/,
                         const Trainer& /*trainer*/) {}
  virtual void on_evaluation_step(const Position& /*position*/, int64_t /*done*/,
                                  int64_t /*total*/) {}
  virtual void on_epoch(const Position& /*position*/, const EpochReport& /*report*/,
                        const Trainer& /*trainer*/) {}
  /// What else the epoch's line of the log says, an object.
  virtual Json epoch_fields(const EpochEnd& /*end*/) { return Json::object(); }
  /// Something the user should know: an image that cannot be read, a checkpoint.
  virtual void on_note(const std::string& /*sentence*/) {}
};

}  // namespace adjoin::train
