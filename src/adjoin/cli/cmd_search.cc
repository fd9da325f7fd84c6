// adjoin search: how much of every block to keep for a target, and the training of what was found.
#include <fmt/format.h>

#include <list>

#include "adjoin/cli/arguments.h"
#include "adjoin/cli/checked_export.h"
#include "adjoin/cli/model_options.h"
#include "adjoin/cli/run_command.h"
#include "adjoin/cli/run_results.h"
#include "adjoin/cli/search_results.h"
#include "adjoin/cli/worker_processes.h"
#include "adjoin/core/place.h"
#include "adjoin/io/onnx/export.h"
#include "adjoin/search/bayes_run.h"
#include "adjoin/search/search_run.h"

namespace adjoin::cli {
namespace {

using search::Method;
using search::SearchConfig;

bool is_trained(const Json& run) {
  return run.contains("large") && run.at("large").contains("file");
}

void print_searches(const std::vector<Json>& runs) {
  std::vector<std::vector<Json>> networks;
  for (const Json& run : runs) {
    print_search(run);
    if (is_trained(run)) networks.push_back({run.at("large"), run.at("small")});
  }
  if (!networks.empty()) print_networks(networks);
}

std::vector<std::string> search_averages(const Json& run) {
  std::vector<std::string> pointers = {"/macs", "/params", "/seconds"};
  if (is_trained(run)) pointers.insert(pointers.end(), {"/large/top1", "/small/top1"});
  return pointers;
}

void time_networks(Json& run) {
  if (is_trained(run)) add_latencies({&run.at("large"), &run.at("small")});
}

ConfigFlagsOptions flag_options() {
  ConfigFlagsOptions options = train_flag_options();
  options.headings.insert(options.headings.begin(), {{"method", "The search"},
                                                     {"order", "The training that follows"},
                                                     {"lambda", "How networks are taught"}});
  return options;
}

/// Where the file that a search began with is gone, its copy does. Another one must be there.
void check_from(const std::string& from, const std::string& begun) {
  if (from == begun || from.empty() || place_at(from) != Place::kNothing) return;
  throw Error(ErrorKind::kIo, from +
                                  ": is not there; leave --from out to go on with the teacher "
                                  "that the search began with");
}

/// Error(kConfig) when a search that goes on in the folder is another one.
void check_same_search(const SearchConfig& config, const std::string& folder) {
  const std::string file = folder + "/config.yaml";
  if (!search::has_search(folder) && place_at(folder + "/last.ckpt") == Place::kNothing) return;
  SearchConfig begun;
  merge_json(saved_config(folder, "search"), begun, file);
  Json then = to_json(begun);
  Json now = to_json(config);
  now.erase("retrain");                   // what was found may be trained later
  if (config.method == Method::kBayes) {  // a study knows itself what may differ
    check_from(config.compress.train.from, begun.compress.train.from);
    then = {{"method", then.at("method")}};
    now = {{"method", now.at("method")}};
  } else if (now.at("dtype") == "auto") {
    now.erase("dtype");
  }
  check_unchanged(now, then, folder);
}

/// Runs trials in further processes of this program, while they are worked at here.
std::vector<std::pair<int64_t, int>> with_helpers(const StopSignal& stop, const std::string& folder,
                                                  int64_t count, int threads,
                                                  const std::function<void()>& work) {
  WorkerProcesses others;
  for (int64_t i = 1; i <= count; ++i) {
    others.start({"search", "--join", "--output", folder, "--progress", "silent"},
                 fmt::format("{}/search/worker-{}.log", folder, i), threads);
  }
  work();
  std::vector<std::pair<int64_t, int>> failed;
  for (const auto& [i, code] : others.wait(stop)) failed.emplace_back(i + 1, code);
  return failed;
}

/// small.onnx beside what was trained.
void export_small(Json& run, const train::Stages& stages) {
  if (!io::has_onnx()) {
    print_notes({"small.onnx is not written: this program was built without ONNX"});
    return;
  }
  Json& small = run.at("small");
  const std::string exported = stages.folder + "/small.onnx";
  try {
    checked_export(models::load(small.at("file").get<std::string>()), exported, {}, stages.stop);
    small["onnx"] = exported;
  } catch (const Error& error) {  // hours of training are not lost for it
    small["onnx"] = nullptr;
    print_notes({fmt::format("warning: small.onnx is not written: {}", error.what())});
  }
}

/// What the command line says, and the search it stands for.
class SearchCommand {
 public:
  SearchCommand(ConfigFlags& flags, const RunFlags& run_flags, bool is_joined)
      : flags_(flags), run_flags_(run_flags), is_joined_(is_joined) {}

  SearchConfig config(const std::string& folder, std::optional<int64_t> seed) const {
    auto whole = resolved<SearchConfig>(
        flags_, run_flags_, folder, "search",
        [](auto& all) -> auto& { return all.compress.train; });
    whole.compress.train.seed = seed.value_or(whole.compress.train.seed);
    if (run_flags_.is_resumed && !is_joined_) check_same_search(whole, folder);
    return whole;
  }

  /// All of the search; its result where no training is left.
  std::optional<Json> search(const train::Stages& stages, std::optional<int64_t> seed) {
    SearchConfig whole = config(stages.folder, seed);
    if (whole.method == Method::kBayes) {
      search::BayesRun& bayes = bayes_.emplace_back(std::move(whole), stages.folder);
      if (is_joined_) return bayes.join(stages);
      bayes.take_folder(run_flags_.is_resumed);
      print_notes(bayes.notes());
      bayes.search(stages, std::bind_front(with_helpers, std::cref(stages.stop)));
      Json result = bayes.finish(stages);
      if (is_trained(result)) export_small(result, stages);
      return result;
    }
    if (is_joined_) {
      throw Error(ErrorKind::kUsage, "--join: is for searches by --method bayes");
    }
    run_.emplace(std::move(whole), stages.folder);
    if (stages.is_first()) {
      run_->take_folder(run_flags_.is_resumed);
      print_notes(run_->notes());
    }
    run_->search(stages);
    if (run_->config().retrain) return std::nullopt;
    return run_->result();
  }

  train::Job prepare(const std::string& folder, std::optional<int64_t> seed,
                     const train::Launch& launch) const {
    if (!run_flags_.is_dry_run) return run_->training(launch);
    const auto first = [&](const auto& whole) {
      auto [job, part] = whole.first_job(launch);
      if (launch.rank == 0) {
        print_notes(whole.notes());
        print_notes({"what follows is " + part});
      }
      return std::move(job);
    };
    SearchConfig whole = config(folder, seed);
    search::check_folder(folder, run_flags_.is_resumed);
    if (whole.method == Method::kBayes) return first(search::BayesRun(std::move(whole), folder));
    return first(search::SearchRun(std::move(whole), folder));
  }

  Json result(const train::Job& job, const train::RunResult& trained) const {
    return run_->result(job, trained);
  }

 private:
  ConfigFlags& flags_;
  const RunFlags& run_flags_;
  bool is_joined_;
  std::optional<search::SearchRun> run_;
  std::list<search::BayesRun> bayes_;  // each keeps its folder until the results are written
};

void check_join(const CLI::App& app, const RunFlags& flags) {
  if (flags.output.empty() || !flags.seeds.empty()) {
    throw Error(ErrorKind::kUsage, "--join needs --output DIR, one search to join");
  }
  if (place_at(flags.output + "/study.db") != Place::kFile) {
    throw Error(ErrorKind::kUsage,
                flags.output + ": holds no study yet; start the search there, then join it");
  }
  if (app.get_option("--jobs")->count() > 0) {
    throw Error(ErrorKind::kUsage, "--jobs: --join is one process; start it as often as you like");
  }
  for (const char* flag : {"--finalists", "--final-training", "--retrain"}) {
    if (app.get_option(flag)->count() == 0) continue;
    throw Error(ErrorKind::kUsage, std::string(flag) +
                                       ": --join runs trials alone; say it to the search itself, "
                                       "with --resume if it has ended");
  }
}

}  // namespace

int run_search(Args args) {
  CLI::App app("Finds how much of every block to keep for a target, then trains that network.",
               "search");
  RunFlags run_flags;
  bool is_joined = false;
  add_run_flags(app, run_flags);
  app.add_flag("--join", is_joined,
               "bayes: run trials of the search in --output beside the process that began it");
  ConfigFlags flags(app, SearchConfig{}, flag_options());
  if (!parse(app, args)) return 0;
  if (is_joined) check_join(app, run_flags);
  run_flags.is_resumed = run_flags.is_resumed || is_joined;
  SearchCommand search(flags, run_flags, is_joined);
  RunCommand command;
  command.config = [&](const std::string& folder) {
    return search.config(folder, {}).compress.train;
  };
  command.has_files = !is_joined;
  command.before = [&](const train::Stages& stages, std::optional<int64_t> seed) {
    return search.search(stages, seed);
  };
  command.prepare = [&](const std::string& folder, std::optional<int64_t> seed,
                        const train::Launch& launch) {
    return search.prepare(folder, seed, launch);
  };
  command.result = [&](const std::string& /*folder*/, const train::Job& job,
                       const train::RunResult& trained) { return search.result(job, trained); };
  command.print = print_searches;
  command.averaged = search_averages;
  command.complete = time_networks;
  return run_command(run_flags, command);
}

}  // namespace adjoin::cli
