#pragma once

// What `train` and `compress` share: flags of a run, its folder, several seeds, dry runs, resuming,
// processes and signals.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "adjoin/cli/config_options.h"
#include "adjoin/core/error.h"
#include "adjoin/core/place.h"
#include "adjoin/core/progress.h"
#include "adjoin/train/job.h"
#include "adjoin/train/run.h"
#include "adjoin/train/stages.h"

namespace adjoin::cli {

struct RunFlags {
  std::string output;
  std::vector<int64_t> seeds;
  bool is_resumed = false;
  bool is_dry_run = false;
  bool is_json = false;
  std::string progress = "auto";

  ProgressStyle progress_style() const;
};

void add_run_flags(CLI::App& app, RunFlags& flags);

/// How the fields of a training run appear on a command line: other names, headings.
ConfigFlagsOptions train_flag_options();

/// Changes of the model on the command line, as --set has them, over those of recipes.
void merge_sets(std::vector<std::string>& sets, const std::vector<std::string>& given);

/// A run that goes on has the config it began with; what the user says again must agree.
/// Error(kConfig) naming the first field that does not.
void check_unchanged(const Json& now, const Json& then, const std::string& where);

/// Whether there is a run in the folder, with a config.yaml or what else a run writes.
bool is_begun(const std::string& folder);

/// What config.yaml in a run folder says. Error(kUsage) when the run is of another command.
Json saved_config(const std::string& folder, std::string_view verb);

/// The config of the run in `folder`. One that goes on is based on what the folder says.
/// `train_part` finds the TrainConfig in it.
template <class Config, class TrainPart>
Config resolved(ConfigFlags& flags, const RunFlags& run, const std::string& folder,
                std::string_view verb, TrainPart train_part) {
  if (!run.seeds.empty() && flags.is_flag("seed")) {
    throw Error(ErrorKind::kUsage, "--seed: --seeds says the seeds of all runs; leave one out");
  }
  Config base;
  const std::string saved = folder + "/config.yaml";
  if (run.is_resumed && is_begun(folder)) merge_json(saved_config(folder, verb), base, saved);
  Config config = flags.resolve(base);
  merge_sets(train_part(config).set, flags.model_sets());
  return config;
}

/// What a command adds to the run itself.
struct RunCommand {
  /// Of the run in a folder; the seed where one is given with --seeds.
  std::function<train::TrainConfig(const std::string& folder)> config;
  std::function<train::Job(const std::string& folder, std::optional<int64_t> seed,
                           const train::Launch& launch)>
      prepare;
  std::function<Json(const std::string& run, const train::Job&, const train::RunResult&)> result;
  std::function<void(const std::vector<Json>& results)> print;
  std::function<std::vector<std::string>(const Json& result)> averaged;  ///< JSON pointers
  /// What takes long, after the last run: other processes wait for the first between two.
  std::function<void(Json& result)> complete = {};
  /// What comes before the run; the result where nothing comes after. The seed as above.
  std::function<std::optional<Json>(const train::Stages& stages, std::optional<int64_t> seed)>
      before = {};
  bool has_files = true;  ///< whether result.json and report.html are written
};

/// All runs of a command line. The exit code.
int run_command(const RunFlags& flags, const RunCommand& command);

/// {"runs", "mean", "std"} over several seeds, of the numbers at some JSON pointers.
Json over_seeds(const std::vector<Json>& runs, const std::vector<std::string>& pointers);

}  // namespace adjoin::cli
