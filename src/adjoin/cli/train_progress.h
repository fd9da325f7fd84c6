#pragma once

// A run on the screen: a bar per epoch with loss, accuracy, images per second and the time left.

#include "adjoin/core/progress.h"
#include "adjoin/train/observer.h"

namespace adjoin::cli {

class TrainProgress : public train::Observer {
 public:
  /// `has_accuracy`: whether that of training batches means something, which mixing takes away.
  /// `names`: of the networks inside the large one.
  TrainProgress(Progress& progress, bool has_accuracy, std::vector<std::string> names = {})
      : progress_(progress), has_accuracy_(has_accuracy), names_(std::move(names)) {}

  void on_step(const train::Position& position) override;
  void on_report(const train::Position& position, const train::StepReport& report,
                 const train::Trainer& trainer) override;
  void on_evaluation_step(const train::Position& position, int64_t done, int64_t total) override;
  void on_epoch(const train::Position& position, const train::EpochReport& report,
                const train::Trainer& trainer) override;
  void on_note(const std::string& sentence) override { progress_.note(sentence); }

 private:
  void begin_epoch(const train::Position& position);

  Progress& progress_;
  bool has_accuracy_;
  std::vector<std::string> names_;
  int64_t shown_epoch_ = -1;
  std::string text_;
};

}  // namespace adjoin::cli
