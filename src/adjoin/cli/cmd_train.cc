// adjoin train: one network, from its first step to a model file, through crashes and signals.
#include <iostream>

#include "adjoin/cli/arguments.h"
#include "adjoin/cli/run_command.h"
#include "adjoin/core/table.h"
#include "adjoin/cost/cost.h"

namespace adjoin::cli {
namespace {

Json training_json(const std::string& run, const train::Job& job, const train::RunResult& result) {
  const Cost network = cost(job.header.spec);
  const train::Evaluation& evaluation = result.evaluations[0];
  return {{"run", run},
          {"top1", evaluation.top1},
          {"top5", evaluation.top5},
          {"loss", evaluation.loss},
          {"params", network.params},
          {"macs", network.macs.total()},
          {"seconds", result.seconds},
          {"images", evaluation.images},
          {"best_top1", result.best_top1},
          {"best_epoch", result.best_epoch}};
}

std::vector<std::string> train_averages(const Json& /*result*/) {
  return {"/top1", "/top5", "/loss", "/seconds"};
}

void print_trainings(const std::vector<Json>& runs) {
  Table table({"run", ">top1 %", ">top5 %", ">loss", ">params", ">MACs", ">time"});
  for (const Json& run : runs) {
    table.add(
        {run.at("run").get<std::string>(), fmt::format("{:.2f}", run.at("top1").get<double>()),
         fmt::format("{:.2f}", run.at("top5").get<double>()),
         fmt::format("{:.4f}", run.at("loss").get<double>()),
         with_commas(run.at("params").get<int64_t>()), short_count(run.at("macs").get<double>()),
         short_duration(run.at("seconds").get<double>())});
  }
  std::cout << table.text();
  if (runs.size() > 1) {
    const Json all = over_seeds(runs, {"/top1"});
    fmt::print("top1 over {} seeds: {:.2f} +- {:.2f} %\n", runs.size(),
               all.at("mean").at("top1").get<double>(), all.at("std").at("top1").get<double>());
  }
}

}  // namespace

int run_train(Args args) {
  CLI::App app("Trains one network on images with labels.", "train");
  RunFlags run_flags;
  add_run_flags(app, run_flags);
  ConfigFlags flags(app, train::TrainConfig{}, train_flag_options());
  if (!parse(app, args)) return 0;
  const auto config = [&](const std::string& folder) {
    return resolved<train::TrainConfig>(
        flags, run_flags, folder, "train", [](auto& whole) -> auto& { return whole; });
  };
  const auto prepare = [&](const std::string& folder, std::optional<int64_t> seed,
                           const train::Launch& launch) {
    train::TrainConfig of_run = config(folder);
    of_run.seed = seed.value_or(of_run.seed);
    return train::prepare(of_run, launch);
  };
  return run_command(run_flags, {config, prepare, training_json, print_trainings, train_averages});
}

}  // namespace adjoin::cli
