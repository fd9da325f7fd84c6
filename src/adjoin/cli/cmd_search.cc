// adjoin search: how much of every block to keep for a target, and the training of what was found.
#include "adjoin/cli/arguments.h"
#include "adjoin/cli/bayes_run.h"
#include "adjoin/cli/model_options.h"
#include "adjoin/cli/run_results.h"
#include "adjoin/cli/search_run.h"
#include "adjoin/core/place.h"

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
    const bool is_bayes = run.value("method", "") == "bayes" || run.contains("joined");
    is_bayes ? print_bayes_result(run) : print_architecture(run);
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
  if (is_joined && (run_flags.output.empty() || !run_flags.seeds.empty())) {
    throw Error(ErrorKind::kUsage, "--join needs --output DIR, one search to join");
  }
  if (is_joined && place_at(run_flags.output + "/study.db") != Place::kFile) {
    throw Error(ErrorKind::kUsage,
                run_flags.output + ": holds no study yet; start the search there, then join it");
  }
  if (is_joined && app.get_option("--jobs")->count() > 0) {
    throw Error(ErrorKind::kUsage, "--jobs: --join is one process; start it as often as you like");
  }
  run_flags.is_resumed = run_flags.is_resumed || is_joined;
  const auto config = [&](const std::string& folder, std::optional<int64_t> seed) {
    auto whole = resolved<SearchConfig>(
        flags, run_flags, folder, "search", [](auto& all) -> auto& { return all.compress.train; });
    whole.compress.train.seed = seed.value_or(whole.compress.train.seed);
    if (run_flags.is_resumed && !is_joined) check_unchanged(whole, folder);
    return whole;
  };
  const auto is_bayes = [&](const std::string& folder) {
    return config(folder, {}).method == Method::kBayes;
  };
  std::optional<SearchRun> run;
  const auto begin = [&](const std::string& folder, std::optional<int64_t> seed) {
    run.emplace(config(folder, seed), folder);
  };
  RunCommand command;
  command.config = [&](const std::string& folder) { return config(folder, {}).compress.train; };
  command.has_files = !is_joined;
  command.before = [&](const Stages& stages) -> std::optional<Json> {
    if (is_bayes(stages.folder)) {
      BayesRun bayes(config(stages.folder, stages.seed), stages.folder);
      if (is_joined) return bayes.join(stages);
      auto hold = held(stages.folder, bayes.config(), run_flags.is_resumed);
      print_notes(bayes.notes());
      bayes.search(stages);
      hold.reset();
      return bayes.finish(stages);
    }
    if (is_joined) {
      throw Error(ErrorKind::kUsage, "--join: is for searches by --method bayes");
    }
    begin(stages.folder, stages.seed);
    if (stages.is_first) {
      run->take_folder(run_flags.is_resumed);
      print_notes(run->notes());
    }
    run->search(stages);
    if (run->config().retrain) return std::nullopt;
    return run->result();
  };
  command.prepare = [&](const std::string& folder, std::optional<int64_t> seed,
                        const train::Launch& launch) {
    if (!run_flags.is_dry_run) return run->training(launch);
    const auto first = [&](const auto& whole) {
      auto [job, part] = whole.first_job(launch);
      if (launch.rank == 0) {
        print_notes(whole.notes());
        print_notes({"what follows is " + part});
      }
      return std::move(job);
    };
    if (is_bayes(folder)) return first(BayesRun(config(folder, seed), folder));
    begin(folder, seed);
    return first(*run);
  };
  command.result = [&](const std::string& /*folder*/, const train::Job& job,
                       const train::RunResult& result) { return run->result(job, result); };
  command.print = print_searches;
  command.averaged = search_averages;
  command.complete = time_networks;
  return run_command(run_flags, command);
}

}  // namespace adjoin::cli
