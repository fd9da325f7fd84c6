#include "adjoin/cli/train_progress.h"

#include <fmt/format.h>

#include "adjoin/core/table.h"

namespace adjoin::cli {

void TrainProgress::begin_epoch(const train::Position& position) {
  if (shown_epoch_ == position.epoch) return;
  shown_epoch_ = position.epoch;
  text_.clear();
  const auto epochs = static_cast<double>(position.epochs);
  progress_.begin(fmt::format("epoch {}/{}", position.epoch + 1, position.epochs), position.steps,
                  {static_cast<double>(position.epoch) / epochs, 1 / epochs});
}

void TrainProgress::on_step(const train::Position& position) {
  begin_epoch(position);
  progress_.update(position.step, text_);
}

void TrainProgress::on_report(const train::Position& position, const train::StepReport& report,
                              const train::Trainer& /*trainer*/) {
  begin_epoch(position);
  text_ = fmt::format("loss {:.3f}", report.metrics.loss);
  if (has_accuracy_) text_ += fmt::format("  acc {:.1f} %", report.metrics.accuracy[0]);
  text_ +=
      fmt::format("  {} img/s", with_commas(static_cast<int64_t>(report.images_per_second + 0.5)));
  progress_.update(position.step, text_);
}

void TrainProgress::on_evaluation_step(const train::Position& position, int64_t done,
                                       int64_t total) {
  begin_epoch(position);
  progress_.update(position.step, fmt::format("{}  evaluating {}/{}", text_, done, total));
}

void TrainProgress::on_epoch(const train::Position& position, const train::EpochReport& report,
                             const train::Trainer& /*trainer*/) {
  begin_epoch(position);
  const train::Evaluation& e = report.evaluations[0];
  std::string text = fmt::format("loss {:.3f}  val loss {:.3f}  {} {:.2f} %", report.train_loss,
                                 e.loss, names_.empty() ? "top1" : "large", e.top1);
  if (names_.empty()) text += fmt::format("  top5 {:.2f} %", e.top5);
  for (size_t i = 0; i < names_.size(); ++i) {
    text += fmt::format("  {} {:.2f} %", names_[i], report.evaluations[i + 1].top1);
  }
  progress_.finish(text + (report.is_best ? "  best" : ""));
}

}  // namespace adjoin::cli
