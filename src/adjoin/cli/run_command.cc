#include "adjoin/cli/run_command.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "adjoin/analysis/inspect_observer.h"
#include "adjoin/cli/arguments.h"
#include "adjoin/cli/model_options.h"
#include "adjoin/cli/train_progress.h"
#include "adjoin/core/atomic_file.h"
#include "adjoin/core/table.h"
#include "adjoin/core/text.h"
#include "adjoin/cost/cost.h"
#include "adjoin/report/html.h"
#include "adjoin/report/run_view.h"
#include "adjoin/train/checkpoint.h"
#include "adjoin/train/dry_run.h"

namespace adjoin::cli {
namespace {

void print_estimate(const train::Job& job, const train::Estimate& e) {
  Table table({"what", ">value"});
  const auto add_network = [&](const std::string& name, const ModelSpec& spec) {
    const Cost counted = cost(spec);
    table.add({name + ": parameters", with_commas(counted.params)});
    table.add({name + ": MACs per image", short_count(static_cast<double>(counted.macs.total()))});
  };
  add_network(job.header.spec.name, job.header.spec);
  for (const train::InnerNetwork& inner : job.inner) add_network(inner.name, inner.derived.spec);
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
class OneRun {
 public:
  OneRun(const RunFlags& flags, const RunCommand& command, std::string whole, std::string output,
         train::Job job, train::Group& group)
      : flags_(flags),
        command_(command),
        whole_(std::move(whole)),
        output_(std::move(output)),
        job_(std::move(job)),
        group_(group) {
    if (group_.is_first()) print_notes(job_.notes);
    if (job_.config.batch_size < group_.size()) {
      throw Error(ErrorKind::kConfig, fmt::format("batch_size: is {}, fewer than the {} processes",
                                                  job_.config.batch_size, group_.size()));
    }
  }

  void dry_run() {
    const train::Estimate estimate = train::estimate(job_, group_);
    if (!group_.is_first()) return;
    if (!flags_.is_json) return print_estimate(job_, estimate);
    Json json = cost_to_json(job_.header.spec.name, cost(job_.header.spec));
    for (const train::InnerNetwork& inner : job_.inner) {
      json["small"].push_back(cost_to_json(inner.name, cost(inner.derived.spec)));
    }
    json["estimate"] = train::to_json(estimate);
    print_json(json);
  }

  /// `may_exist`: whether a run that began in the folder goes on.
  train::RunResult run(const StopSignal& stop, bool may_exist) {
    std::optional<train::RunFolder> folder;
    if (group_.is_first()) folder.emplace(output_, may_exist);
    train::RunOptions options;
    options.checkpoint = checkpoint(folder);
    if (folder) folder->write("config.yaml", job_.config_text);
    Progress progress(std::cerr, flags_.progress_style());
    const data::AugmentOptions& augment = job_.config.augment;
    TrainProgress screen(progress, augment.mixup == 0 && augment.cutmix == 0, job_.inner_names());
    ProcessNotes notes(group_.rank());
    options.group = &group_;
    options.folder = folder ? &*folder : nullptr;
    options.observers = {&notes};
    if (group_.is_first()) {
      analysis::add_inspect_observer(job_);
      options.observers = {&screen};
      for (const auto& observer : job_.observers) options.observers.push_back(observer.get());
    }
    options.stop = &stop;
    train::RunResult result = train::run(job_, options);
    if (result.stopped_by != 0 && group_.is_first()) {
      progress.note(fmt::format("adjoin: stopped; {} is saved, go on with --resume --output {}",
                                output_ + "/last.ckpt", whole_));
    }
    return result;
  }

  Json json(const train::RunResult& result) const { return command_.result(output_, job_, result); }

 private:
  /// Where the run goes on; empty when it starts. The first process decides.
  std::string checkpoint(const std::optional<train::RunFolder>& folder) {
    auto is_there = torch::zeros(1, torch::kInt64);
    if (folder && folder->has_checkpoint()) is_there += 1;
    group_.broadcast(is_there);
    if (is_there.item<int64_t>() == 0) return "";
    std::string path = output_ + "/last.ckpt";
    const Json state = train::read_checkpoint_state(path);
    check_unchanged(job_.whole_config, state.at("config"), path);
    train::check_inputs(job_.inputs(), state.at("inputs"), path);
    return path;
  }

  const RunFlags& flags_;
  const RunCommand& command_;
  std::string whole_;
  std::string output_;
  train::Job job_;
  train::Group& group_;
};

/// What the run came to, and the page that shows it.
void write_result(Json& result) {
  const auto folder = result.at("run").get<std::string>();
  result["report"] = folder + "/report.html";
  AtomicFile file(folder + "/result.json");
  file.write(result.dump(2) + "\n");
  file.commit();
  report::write_report(folder);
}

std::string run_folder(const RunFlags& flags, const train::TrainConfig& config) {
  if (!flags.output.empty()) return flags.output;
  const std::string& model = config.model.empty() ? config.from : config.model;
  const size_t name = model.rfind('/') + 1;
  return train::default_run_folder(model.substr(name, model.rfind('.') - name));
}

}  // namespace

ProgressStyle RunFlags::progress_style() const {
  ProgressStyle style = ProgressStyle::kAuto;
  from_json(Json(progress), style, "--progress");
  return style;
}

void add_run_flags(CLI::App& app, RunFlags& flags) {
  app.add_option("--output", flags.output, "the run folder (default runs/<time>-<model>)")
      ->type_name("DIR");
  app.add_flag("--resume", flags.is_resumed,
               "go on with the run in --output if it has a checkpoint, else start");
  app.add_option("--seeds", flags.seeds, "several runs, one in OUTPUT/seed-N for each")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(whole_number(0, 9'000'000'000'000'000));
  app.add_flag("--dry-run", flags.is_dry_run, "take a few steps and say what the run would need");
  app.add_option("--progress", flags.progress, "auto, bar, lines or silent")->capture_default_str();
  app.add_flag("--json", flags.is_json, "print JSON");
}

ConfigFlagsOptions train_flag_options() {
  return {{{"data", "data-dir", "data-path"}, {"batch_size", "b"}, {"workers", "j"}},
          {"set"},
          {{"model", "What to train"},
           {"opt", "Optimizer"},
           {"sched", "Learning rate"},
           {"grad_accum_steps", "Step"},
           {"teacher", "Distillation"},
           {"train_crop_mode", "Augmentation"},
           {"val_fraction", "Data"},
           {"seed", "Run"}}};
}

void check_unchanged(const Json& now, const Json& then, const std::string& where) {
  for (const auto& [key, value] : now.items()) {
    // A field that an older version did not know had no effect then.
    if (train::is_free_to_change(key) || !then.contains(key) || then.at(key) == value) continue;
    throw Error(ErrorKind::kConfig,
                fmt::format("{}: is {}, but the run in {} has {}; leave it as it was, or start "
                            "another run",
                            key, value.dump(), where, then.at(key).dump()));
  }
}

bool is_begun(const std::string& folder) {
  const auto names = {"/config.yaml", "/last.ckpt", "/study.db"};
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return place_at(folder + name) != Place::kNothing; });
}

Json saved_config(const std::string& folder, std::string_view verb) {
  const std::string file = folder + "/config.yaml";
  if (place_at(file) == Place::kNothing) {
    throw Error(ErrorKind::kData, file +
                                      ": is not there; it must say how the run there began. Put "
                                      "it back, or choose another --output");
  }
  Json config = read_yaml_file(file);
  if (!config.is_object()) {
    throw Error(ErrorKind::kData, file + ": is empty; it must say how the run there began");
  }
  const std::string theirs = report::verb_of(config);
  if (theirs != verb) {
    throw Error(ErrorKind::kUsage, fmt::format("{}: is a run of adjoin {}; go on with it by that "
                                               "command, or choose another --output",
                                               folder, theirs));
  }
  return config;
}

void merge_sets(std::vector<std::string>& sets, const std::vector<std::string>& given) {
  for (const Override& change : parse_overrides(given)) {
    std::erase_if(sets, [&](const std::string& set) { return set.starts_with(change.key + "="); });
    sets.push_back(change.key + "=" + change.value);
  }
}

namespace {

/// The runs of one command line, in this process.
class Runs {
 public:
  Runs(const RunFlags& flags, const RunCommand& command)
      : flags_(flags), command_(command), launch_(train::launch_from_environment()) {}

  bool is_first() const { return launch_.rank == 0; }

  void dry_run(const std::string& folder, std::optional<int64_t> seed) {
    one(folder, folder, command_.prepare(folder, seed, launch_)).dry_run();
  }

  Json run(const std::string& folder, std::optional<int64_t> seed) {
    if (command_.before) {
      const auto stage = [&](bool may_exist) {
        return [this, may_exist, &folder](train::Job job, const std::string& where) {
          OneRun run = one(folder, where, std::move(job));
          return finished(run, may_exist);
        };
      };
      const std::optional<Json> result =
          command_.before({folder, launch_, stop_, flags_.progress_style(),
                           stage(flags_.is_resumed), stage(true), print_notes},
                          seed);
      if (result) return *result;
    }
    OneRun last = one(folder, folder, command_.prepare(folder, seed, launch_));
    const train::RunResult result = finished(last, flags_.is_resumed);
    return is_first() ? last.json(result) : Json();
  }

 private:
  /// `whole`: the folder that a user names to go on.
  OneRun one(const std::string& whole, const std::string& folder, train::Job job) {
    if (!group_) group_ = train::Group::join(launch_, job.compute.device);
    return {flags_, command_, whole, folder, std::move(job), *group_};
  }

  train::RunResult finished(OneRun& one, bool may_exist) {
    train::RunResult result = one.run(stop_, may_exist);
    if (result.stopped_by != 0) throw Stopped{result.stopped_by};
    return result;
  }

  const RunFlags& flags_;
  const RunCommand& command_;
  const train::Launch launch_;
  const StopSignal stop_;
  std::optional<train::Group> group_;
};

void print_results(const RunFlags& flags, const RunCommand& command, std::vector<Json>& results) {
  for (Json& result : results) {
    if (command.complete) command.complete(result);
    if (command.has_files) write_result(result);
  }
  if (flags.is_json) {
    const bool is_set = !flags.seeds.empty();
    return print_json(is_set ? over_seeds(results, command.averaged(results[0])) : results[0]);
  }
  command.print(results);
  if (!command.has_files) return;
  for (const Json& result : results) {
    fmt::print("report: {}\n", result.at("report").get<std::string>());
  }
}

}  // namespace

int run_command(const RunFlags& flags, const RunCommand& command) {
  if (flags.is_resumed && flags.output.empty()) {
    throw Error(ErrorKind::kUsage, "--resume needs --output DIR, the run to go on with");
  }
  flags.progress_style();  // refused now rather than after the data are read
  const bool is_set = !flags.output.empty() && !flags.seeds.empty();
  const std::string first =
      is_set ? fmt::format("{}/seed-{}", flags.output, flags.seeds[0]) : flags.output;
  const std::string output = run_folder(flags, command.config(first));
  if (!is_utf8(output)) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("--output: {} is not UTF-8, and files of a run name it", in_quotes(output)));
  }
  std::vector<std::pair<std::string, std::optional<int64_t>>> wanted;
  for (const int64_t seed : flags.seeds) {
    if (std::count(flags.seeds.begin(), flags.seeds.end(), seed) > 1) {
      throw Error(ErrorKind::kUsage, fmt::format("--seeds: names {} twice", seed));
    }
    wanted.emplace_back(fmt::format("{}/seed-{}", output, seed), seed);
  }
  if (flags.seeds.empty()) wanted.emplace_back(output, std::nullopt);
  Runs runs(flags, command);
  std::vector<Json> results;
  try {
    for (const auto& [folder, seed] : wanted) {
      if (flags.is_dry_run) {
        runs.dry_run(folder, seed);
        return 0;
      }
      results.push_back(runs.run(folder, seed));
    }
  } catch (const Stopped& stopped) {
    return 128 + stopped.signal;
  }
  if (runs.is_first()) print_results(flags, command, results);
  return 0;
}

Json over_seeds(const std::vector<Json>& runs, const std::vector<std::string>& pointers) {
  Json result = {{"runs", runs}};
  for (const std::string& pointer : pointers) {
    const Json::json_pointer at(pointer);
    const auto has_it = [&](const Json& run) { return run.contains(at); };
    if (!std::all_of(runs.begin(), runs.end(), has_it)) continue;  // of some, no training
    double sum = 0;
    double squares = 0;
    for (const Json& run : runs) sum += run.at(at).get<double>();
    const double mean = sum / static_cast<double>(runs.size());
    for (const Json& run : runs) squares += std::pow(run.at(at).get<double>() - mean, 2);
    const auto others = static_cast<double>(std::max<size_t>(runs.size() - 1, 1));
    result["mean"][at] = mean;
    result["std"][at] = std::sqrt(squares / others);
  }
  return result;
}

}  // namespace adjoin::cli
