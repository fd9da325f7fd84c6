#include "adjoin/train/run_log.h"

#include <fmt/format.h>

namespace adjoin::train {

Json step_line(const Position& position, const StepReport& report,
               const std::vector<std::string>& terms) {
  const Metrics& metrics = report.metrics;
  Json line = {{"kind", "train"},
               {"epoch", position.epoch},
               {"step", position.steps_done()},
               {"loss", metrics.loss},
               {"accuracy", metrics.accuracy[0]},
               {"lr", report.lr},
               {"grad_norm", metrics.grad_norm},
               {"images_per_second", report.images_per_second}};
  for (size_t i = 1; i < metrics.accuracy.size(); ++i) {
    line["small_accuracy"].push_back(metrics.accuracy[i]);
  }
  for (size_t i = 0; i < terms.size(); ++i) line[terms[i]] = metrics.terms[i];
  return line;
}

Json epoch_line(const Position& position, const EpochReport& report,
                const std::vector<std::string>& small) {
  const Evaluation& large = report.evaluations[0];
  Json line = {{"kind", "epoch"},
               {"epoch", position.epoch},
               {"epochs", position.epochs},
               {"step", position.steps_done()},
               {"train_loss", report.train_loss},
               {"eval_loss", large.loss},
               {"eval_top1", large.top1},
               {"eval_top5", large.top5},
               {"images", large.images},
               {"unreadable", large.unreadable},
               {"lr", report.lr},
               {"is_best", report.is_best},
               {"images_per_second", large.images_per_second()}};
  for (size_t i = 0; i < small.size(); ++i) {
    const Evaluation& e = report.evaluations[i + 1];
    line["small"].push_back(
        {{"name", small[i]}, {"eval_loss", e.loss}, {"eval_top1", e.top1}, {"eval_top5", e.top5}});
  }
  return line;
}

std::string summary_heading(const std::vector<std::string>& small) {
  std::string heading = "epoch,train_loss,eval_loss,eval_top1,eval_top5,lr";
  for (const std::string& name : small) heading += fmt::format(",{0}_loss,{0}_top1,{0}_top5", name);
  return heading + "\n";
}

std::string summary_row(const Position& position, const EpochReport& report) {
  const std::vector<Evaluation>& all = report.evaluations;
  std::string row = fmt::format("{},{},{},{},{},{}", position.epoch, report.train_loss, all[0].loss,
                                all[0].top1, all[0].top5, report.lr);
  for (size_t i = 1; i < all.size(); ++i) {
    row += fmt::format(",{},{},{}", all[i].loss, all[i].top1, all[i].top5);
  }
  return row + "\n";
}

}  // namespace adjoin::train
