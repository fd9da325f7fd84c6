// adjoin train: one network, from its first step to a model file, through crashes and signals.
#include <cmath>
#include <iostream>

#include "adjoin/cli/arguments.h"
#include "adjoin/cli/config_options.h"
#include "adjoin/cli/model_options.h"
#include "adjoin/cli/train_progress.h"
#include "adjoin/core/place.h"
#include "adjoin/core/table.h"
#include "adjoin/cost/cost.h"
#include "adjoin/train/checkpoint.h"
#include "adjoin/train/dry_run.h"
#include "adjoin/train/run.h"

namespace adjoin::cli {
namespace {

struct TrainOptions {
  std::string output;
  std::vector<int64_t> seeds;
  bool is_resumed = false;
  bool is_dry_run = false;
  bool is_json = false;
  std::string progress = "auto";

  ProgressStyle progress_style() const {
    ProgressStyle style = ProgressStyle::kAuto;
    from_json(Json(progress), style, "--progress");
    return style;
  }
};

const ConfigFlagsOptions& flag_options() {
  static const ConfigFlagsOptions kOptions{
      {{"data", "data-dir", "data-path"}, {"batch_size", "b"}, {"workers", "j"}},
      {"set"},
      {{"model", "What to train"},
       {"opt", "Optimizer"},
       {"sched", "Learning rate"},
       {"grad_accum_steps", "Step"},
       {"teacher", "Distillation"},
       {"train_crop_mode", "Augmentation"},
       {"val_fraction", "Data"},
       {"seed", "Run"}}};
  return kOptions;
}

/// A run that goes on has the config it began with; what the user says again must agree.
void check_unchanged(const Json& now, const std::string& checkpoint) {
  const Json then = train::read_checkpoint_state(checkpoint).at("config");
  for (const auto& [key, value] : now.items()) {
    // A field that an older version did not know had no effect then.
    if (train::is_free_to_change(key) || !then.contains(key) || then.at(key) == value) continue;
    throw Error(ErrorKind::kConfig,
                fmt::format("{}: is {}, but the run in {} has {}; leave it as it was, or start "
                            "another run",
                            key, value.dump(), checkpoint, then.at(key).dump()));
  }
}

/// Changes of the model on the command line, over those of recipes.
void merge_sets(std::vector<std::string>& sets, const std::vector<Override>& overrides) {
  for (const Override& given : overrides) {
    std::erase_if(sets, [&](const std::string& set) { return set.starts_with(given.key + "="); });
    sets.push_back(given.key + "=" + given.value);
  }
}

/// A run that goes on is based on the config in its folder.
train::TrainConfig resolve(ConfigFlags& flags, bool is_resumed, const std::string& folder) {
  train::TrainConfig base;
  const std::string saved = folder + "/config.yaml";
  if (is_resumed && place_at(saved) == Place::kFile) {
    merge_json(read_yaml_file(saved), base, saved);
  }
  train::TrainConfig config = flags.resolve(base);
  merge_sets(config.set, parse_overrides(flags.model_sets()));
  return config;
}

Json result_json(const std::string& run, const train::Job& job, const train::RunResult& result) {
  const Cost network = cost(job.header.spec);
  return {{"run", run},
          {"top1", result.evaluations[0].top1},
          {"top5", result.evaluations[0].top5},
          {"loss", result.evaluations[0].loss},
          {"params", network.params},
          {"macs", network.macs.total()},
          {"seconds", result.seconds},
          {"images", result.evaluations[0].images},
          {"best_top1", result.best_top1},
          {"best_epoch", result.best_epoch}};
}

void print_estimate(const train::Job& job, const train::Estimate& e) {
  const Cost network = cost(job.header.spec);
  Table table({"what", ">value"});
  table.add({"model", job.header.spec.name});
  table.add({"parameters", with_commas(network.params)});
  table.add({"MACs per image", short_count(static_cast<double>(network.macs.total()))});
  table.add({"training images", with_commas(e.images)});
  table.add({"steps per epoch", with_commas(e.steps_per_epoch)});
  table.add({"weights, gradients, optimizer", short_bytes(static_cast<double>(e.state_bytes))});
  table.add({"activations, at most", short_bytes(static_cast<double>(e.activation_bytes))});
  table.add({"main memory, most seen", short_bytes(static_cast<double>(e.peak_bytes))});
  table.add({"one step", fmt::format("{:.1f} ms", e.step_seconds * 1e3)});
  table.add({"one epoch", short_duration(e.seconds / static_cast<double>(job.config.epochs))});
  table.add({fmt::format("{} epochs", job.config.epochs), short_duration(e.seconds)});
  std::cout << table.text();
}

/// What processes other than the first have to say.
class ProcessNotes : public train::Observer {
 public:
  explicit ProcessNotes(int rank) : rank_(rank) {}
  void on_note(const std::string& sentence) override {
    print_notes({fmt::format("process {}: {}", rank_, sentence)});
  }

 private:
  int rank_;
};

/// One run, in this process.
class TrainCommand {
 public:
  TrainCommand(const TrainOptions& options, std::string output, train::Job job, train::Group& group)
      : options_(options), output_(std::move(output)), job_(std::move(job)), group_(group) {
    if (group_.is_first()) print_notes(job_.notes);
    if (job_.config.batch_size < group_.size()) {
      throw Error(ErrorKind::kConfig, fmt::format("batch_size: is {}, fewer than the {} processes",
                                                  job_.config.batch_size, group_.size()));
    }
  }

  Json dry_run() {
    const train::Estimate estimate = train::estimate(job_, group_);
    if (!options_.is_json && group_.is_first()) print_estimate(job_, estimate);
    Json json = cost_to_json(job_.header.spec.name, cost(job_.header.spec));
    json["estimate"] = train::to_json(estimate);
    return json;
  }

  /// The result, and the signal that stopped it.
  std::pair<Json, int> run(const StopSignal& stop) {
    std::optional<train::RunFolder> folder;
    if (group_.is_first()) folder.emplace(output_, options_.is_resumed);
    train::RunOptions run_options;
    run_options.checkpoint = checkpoint(folder);
    if (folder) folder->write("config.yaml", job_.config_text);
    Progress progress(std::cerr, options_.progress_style());
    const data::AugmentOptions& augment = job_.config.augment;
    TrainProgress screen(progress, augment.mixup == 0 && augment.cutmix == 0);
    ProcessNotes notes(group_.rank());
    run_options.group = &group_;
    run_options.folder = folder ? &*folder : nullptr;
    run_options.observers = {&notes};
    if (group_.is_first()) run_options.observers = {&screen};
    run_options.stop = &stop;
    const train::RunResult result = train::run(job_, run_options);
    if (result.stopped_by != 0 && group_.is_first()) {
      progress.note(fmt::format("adjoin: stopped; {} is saved, go on with --resume --output {}",
                                output_ + "/last.ckpt", output_));
    }
    return {result_json(output_, job_, result), result.stopped_by};
  }

 private:
  /// Where the run goes on; empty when it starts. The first process decides.
  std::string checkpoint(const std::optional<train::RunFolder>& folder) {
    auto is_there = torch::zeros(1, torch::kInt64);
    if (folder && folder->has_checkpoint()) is_there += 1;
    group_.broadcast(is_there);
    if (is_there.item<int64_t>() == 0) return "";
    std::string path = output_ + "/last.ckpt";
    check_unchanged(job_.whole_config, path);
    return path;
  }

  const TrainOptions& options_;
  std::string output_;
  train::Job job_;
  train::Group& group_;
};

/// Mean and spread of the numbers that differ between seeds.
Json over_seeds(const std::vector<Json>& runs) {
  Json result = {{"runs", runs}};
  for (const char* key : {"top1", "top5", "loss", "seconds"}) {
    double sum = 0;
    double squares = 0;
    for (const Json& run : runs) sum += run.at(key).get<double>();
    const double mean = sum / static_cast<double>(runs.size());
    for (const Json& run : runs) squares += std::pow(run.at(key).get<double>() - mean, 2);
    const auto others = static_cast<double>(std::max<size_t>(runs.size() - 1, 1));
    result["mean"][key] = mean;
    result["std"][key] = std::sqrt(squares / others);
  }
  return result;
}

void print_result(const std::vector<Json>& runs) {
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
    const Json all = over_seeds(runs);
    fmt::print("top1 over {} seeds: {:.2f} +- {:.2f} %\n", runs.size(),
               all.at("mean").at("top1").get<double>(), all.at("std").at("top1").get<double>());
  }
}

void add_options(CLI::App& app, TrainOptions& options) {
  app.add_option("--output", options.output, "the run folder (default runs/<time>-<model>)")
      ->type_name("DIR");
  app.add_flag("--resume", options.is_resumed,
               "go on with the run in --output if it has a checkpoint, else start");
  app.add_option("--seeds", options.seeds, "several runs, one in OUTPUT/seed-N for each")
      ->delimiter(',')
      ->check(whole_number(0, 9'000'000'000'000'000));
  app.add_flag("--dry-run", options.is_dry_run, "take five steps and say what the run would need");
  app.add_option("--progress", options.progress, "auto, bar, lines or silent")
      ->capture_default_str();
  app.add_flag("--json", options.is_json, "print JSON");
}

std::string run_folder(const TrainOptions& options, const train::TrainConfig& config) {
  if (!options.output.empty()) return options.output;
  const std::string& model = config.model.empty() ? config.from : config.model;
  const size_t name = model.rfind('/') + 1;
  return train::default_run_folder(model.substr(name, model.rfind('.') - name));
}

void print_results(const TrainOptions& options, const std::vector<Json>& results, bool is_set) {
  if (!options.is_json) return print_result(results);
  print_json(is_set ? over_seeds(results) : results[0]);
}

}  // namespace

int run_train(Args args) {
  CLI::App app("Trains one network on images with labels.", "train");
  TrainOptions options;
  add_options(app, options);
  ConfigFlags flags(app, train::TrainConfig{}, flag_options());
  if (!parse(app, args)) return 0;
  if (options.is_resumed && options.output.empty()) {
    throw Error(ErrorKind::kUsage, "train: --resume needs --output DIR, the run to go on with");
  }
  options.progress_style();  // refused now rather than after the data are read
  const bool is_set = !options.seeds.empty();
  const train::Launch launch = train::launch_from_environment();
  const std::string output =
      run_folder(options, resolve(flags, options.is_resumed, options.output));
  if (!is_set) options.seeds = {0};
  const StopSignal stop;
  std::optional<train::Group> group;
  std::vector<Json> results;
  for (const int64_t seed : options.seeds) {
    const std::string folder = is_set ? fmt::format("{}/seed-{}", output, seed) : output;
    train::TrainConfig config = resolve(flags, options.is_resumed, folder);
    if (is_set) config.seed = seed;
    train::Job job = train::prepare(config, launch);
    if (!group) group = train::Group::join(launch, job.compute.device);
    TrainCommand command(options, folder, std::move(job), *group);
    if (options.is_dry_run) {
      const Json json = command.dry_run();
      if (options.is_json && group->is_first()) print_json(json);
      return 0;
    }
    auto [result, signal] = command.run(stop);
    if (signal != 0) return 128 + signal;
    results.push_back(std::move(result));
  }
  if (group->is_first()) print_results(options, results, is_set);
  return 0;
}

}  // namespace adjoin::cli
