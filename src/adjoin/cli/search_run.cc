#include "adjoin/cli/search_run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "adjoin/cli/model_options.h"
#include "adjoin/cli/run_results.h"
#include "adjoin/core/place.h"
#include "adjoin/core/progress.h"
#include "adjoin/core/rng.h"
#include "adjoin/core/table.h"
#include "adjoin/search/scorer.h"
#include "adjoin/spec/architecture.h"

namespace adjoin::cli {
namespace {

using search::Method;
using search::SearchConfig;

constexpr size_t kMostScoreBytes = size_t{1} << 30;

bool is_there(const std::string& path) { return place_at(path) != Place::kNothing; }

bool has_search(const std::string& folder) {
  const auto names = {"/search", "/scores.jsonl", "/study.db", "/teacher"};
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return is_there(folder + name); });
}

}  // namespace

std::unique_ptr<train::RunFolder> held(const std::string& folder, const SearchConfig& config,
                                       bool is_resumed) {
  if (!is_resumed && has_search(folder)) {
    throw Error(ErrorKind::kUsage, folder +
                                       ": holds a search already; go on with it by --resume, or "
                                       "choose another --output");
  }
  auto hold = std::make_unique<train::RunFolder>(folder, is_resumed);
  // While no search is there, these are the settings that count.
  if (!has_search(folder) || place_at(folder + "/config.yaml") != Place::kFile) {
    hold->write("config.yaml", config_yaml(config));
  }
  return hold;
}

void check_unchanged(const SearchConfig& config, const std::string& folder) {
  const std::string file = folder + "/config.yaml";
  if (!has_search(folder) && !is_there(folder + "/last.ckpt")) return;
  SearchConfig begun;
  merge_json(saved_config(folder, "search"), begun, file);
  Json then = to_json(begun);
  Json now = to_json(config);
  now.erase("retrain");                   // what was found may be trained later
  if (config.method == Method::kBayes) {  // a study knows itself what may differ
    then = {{"method", then.at("method")}};
    now = {{"method", now.at("method")}};
  } else if (now.at("dtype") == "auto") {
    now.erase("dtype");
  }
  check_unchanged(now, then, folder);
}

SearchRun::SearchRun(SearchConfig config, std::string folder)
    : config_(std::move(config)),
      folder_(std::move(folder)),
      question_(search::question(config_)) {}

std::vector<std::string> SearchRun::notes() const {
  std::vector<std::string> notes = search::without_effect(config_);
  const std::vector<std::string> of_space = question_.space.notes();
  notes.insert(notes.end(), of_space.begin(), of_space.end());
  notes.push_back(search::feasible_text(question_.space));
  if (config_.method == Method::kEvolve && config_.trials <= search::kPopulation) {
    notes.push_back(fmt::format("the first {} trials are drawn at random: with {} nothing evolves",
                                search::kPopulation, config_.trials));
  }
  return notes;
}

std::pair<train::Job, std::string> SearchRun::first_job(const train::Launch& launch) const {
  switch (config_.method) {
    case Method::kDan: return {dan_job(launch), "the search; training is that of compress"};
    case Method::kUniform:
      return {search::prepare_training(config_, uniform().choice, launch), "the training"};
    default:
      if (!config_.score.empty()) {
        return {search::prepare_training(config_, proposal({}).choice, launch), "the training"};
      }
      return {search::prepare_trial(config_, proposal({}).choice, launch),
              fmt::format("one of {} trials; training is that of compress", config_.trials)};
  }
}

void SearchRun::search(const Stages& stages) {
  switch (config_.method) {
    case Method::kDan: {
      const train::RunResult result = stages.run(dan_job(stages.launch), folder_ + "/search");
      searched_ = result.evaluations;
      seconds_ = result.seconds;
      trials_ = 1;
      found_ = search::fitted_as(question_.space, written());
      break;
    }
    case Method::kUniform:
      found_ = uniform();
      if (stages.is_first) write(found_);
      break;
    case Method::kBayes: break;  // another class
    case Method::kRandom:
    case Method::kEvolve:
      config_.score.empty() ? try_networks(stages) : score_networks(stages);
      break;
  }
  hold_.reset();
}

train::Job SearchRun::training(const train::Launch& launch) const {
  return search::prepare_training(config_, found_.choice, launch);
}

Json SearchRun::result() const {
  const search::Space& space = question_.space;
  const search::Price least = space.least();
  const search::Price most = space.most();
  const search::Price large = space.price(keep_everything(space.large()));
  Json trims = Json::array();
  for (const search::Trim& trim : found_.trims) {
    trims.push_back({{"block", trim.block}, {"from", trim.from}, {"to", trim.to}});
  }
  Json json = {
      {"run", folder_},
      {"method", std::string(enum_name(config_.method))},
      {"trials", trials_},
      {"architecture", architecture_to_json(space.large(), found_.choice)},
      {"alphas", found_.alphas},
      {"trimmed", trims},
      {"feasible", {{"macs", {least.macs, most.macs}}, {"params", {least.params, most.params}}}},
      {"target", question_.target.json()},
      {"macs", found_.price.macs},
      {"params", found_.price.params},
      {"large", {{"macs", large.macs}, {"params", large.params}}},
      {"small", {{"macs", found_.price.macs}, {"params", found_.price.params}}},
      {"search_seconds", seconds_},
      {"seconds", seconds_}};
  if (!searched_.empty()) {  // on the images that were set aside
    const char* const names[] = {"large", "searched", "uniform"};
    for (size_t i = 0; i < searched_.size(); ++i) {
      json["search_top1"][names[i]] = searched_[i].top1;
    }
  }
  return json;
}

Json SearchRun::result(const train::Job& job, const train::RunResult& trained) const {
  const auto file = [&](const std::string& name) { return folder_ + "/" + name + ".safetensors"; };
  Json json = result();
  json["large"] = network_json(job.header.spec, trained.evaluations[0], file(job.name));
  json["small"] =
      network_json(job.inner[0].derived.spec, trained.evaluations[1], file(job.inner[0].name));
  json["epochs"] = trained.epochs;
  json["seconds"] = seconds_ + trained.seconds;
  return json;
}

train::Job SearchRun::dan_job(const train::Launch& launch) const {
  return search::prepare_dan(config_, question_, launch, folder_);
}

void SearchRun::write(const search::Fitted& fitted) const {
  search::write_architecture(folder_, question_.space.large(), fitted.choice);
}

/// What the first process wrote before the last step that all took together.
Choice SearchRun::written() const {
  const std::string file = search::architecture_file(folder_);
  return architecture_from_json(question_.space.large(), read_json_file(file), file);
}

search::Fitted SearchRun::uniform() const {
  auto found = search::fit_evenly(question_.space, question_.target);
  if (!found) {
    throw Error(ErrorKind::kUsage, question_.space.large().name +
                                       ": the target cannot be reached with all blocks alike");
  }
  return std::move(*found);
}

/// The next network to try: the first one proposed, or the best of some by a proxy.
search::Fitted SearchRun::proposal(const std::vector<search::Trial>& tried,
                                   const StopSignal* stop) const {
  const auto propose =
      config_.method == Method::kEvolve ? search::evolved_proposal : search::random_proposal;
  const auto proposed = [&](uint64_t by) {
    return propose(question_.space, question_.target, by, tried);
  };
  if (config_.prefilter.empty()) return proposed(seed());
  const search::Scorer scorer(question_.space, config_.prefilter, seed());
  std::vector<search::Trial> drawn;
  for (int64_t i = 0; i < config_.prefilter_of; ++i) {
    if (stop != nullptr && stop->received() != 0) throw Stopped{stop->received()};
    drawn.push_back({proposed(stream_key(seed(), {static_cast<uint64_t>(i)})), 0});
    drawn.back().worth = scorer(drawn.back().fitted.choice);
  }
  return best(drawn).fitted;
}

/// Judges networks by a proxy alone; scores.jsonl gets a line for each. What was found before, in
/// a run that goes on, stays.
void SearchRun::score_networks(const Stages& stages) {
  if (stages.launch.size > 1) {
    throw Error(ErrorKind::kUsage,
                "--score: is for one process; search with --no-retrain, then train what was found "
                "by adjoin compress --alphas @RUN/architecture.json");
  }
  const std::string kept = folder_ + "/scores.jsonl";
  if (place_at(kept) == Place::kFile) {
    const std::string lines = read_text_file(kept, kMostScoreBytes);
    trials_ = std::count(lines.begin(), lines.end(), '\n');
    found_ = search::fitted_as(question_.space, written());
    return;
  }
  const search::Scorer scorer(question_.space, config_.score, seed());
  Progress progress(std::cerr, stages.progress);
  progress.begin("networks scored", config_.trials);
  const auto began = std::chrono::steady_clock::now();
  const double limit = config_.budget_minutes * 60;
  std::vector<search::Trial> tried;
  std::string lines;
  while (static_cast<int64_t>(tried.size()) < config_.trials) {
    if (!tried.empty() && limit > 0 && seconds_ >= limit) break;
    if (stages.stop.received() != 0) {
      progress.note("adjoin: stopped; scores are not kept until all are there");
      throw Stopped{stages.stop.received()};
    }
    const search::Fitted next = proposal(tried);
    tried.push_back({next, scorer(next.choice)});
    lines += Json({{"alphas", next.alphas},
                   {"macs", next.price.macs},
                   {"params", next.price.params},
                   {config_.score, tried.back().worth}})
                 .dump() +
             "\n";
    progress.update(static_cast<int64_t>(tried.size()), config_.score);
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
  progress.finish("");
  trials_ = static_cast<int64_t>(tried.size());
  found_ = best(tried).fitted;
  SearchRun::write(found_);
  hold_->write("scores.jsonl", lines);
}

void SearchRun::try_networks(const Stages& stages) {
  std::vector<search::Trial> tried;
  const double limit = config_.budget_minutes * 60;
  while (static_cast<int64_t>(tried.size()) < config_.trials) {
    if (!tried.empty() && limit > 0 && seconds_ >= limit) break;
    const search::Fitted next = proposal(tried, &stages.stop);
    const std::string folder = fmt::format("{}/search/trial-{:03}", folder_, tried.size());
    const train::RunResult result =
        stages.run(search::prepare_trial(config_, next.choice, stages.launch), folder);
    tried.push_back({next, result.evaluations[1].top1});
    seconds_ += result.seconds;
    if (stages.is_first) {
      print_notes({fmt::format("trial {}: {:.2f} % with {}", tried.size(), tried.back().worth,
                               fmt::join(next.alphas, ","))});
    }
  }
  trials_ = static_cast<int64_t>(tried.size());
  found_ = best(tried).fitted;
  if (stages.is_first) write(found_);
}

std::string used_of_target(const Json& run) {
  std::string text;
  for (const auto& [what, limit] : run.at("target").items()) {
    text += fmt::format(", {:.1f} % of the target of {} {}",
                        100 * run.at(what).get<double>() / limit.get<double>(),
                        short_count(limit.get<double>()), what);
  }
  return text;
}

void print_architecture(const Json& run) {
  const auto macs = run.at("macs").get<double>();
  const std::string text =
      fmt::format("{}: alphas {}, {} MACs ({:.3f} of the large network's)",
                  run.at("run").get<std::string>() + "/architecture.json",
                  fmt::join(run.at("alphas").get<std::vector<int64_t>>(), ","), short_count(macs),
                  macs / run.at("large").at("macs").get<double>());
  std::cout << text << used_of_target(run) << '\n';
  for (const Json& trim : run.at("trimmed")) {
    fmt::print("  {}: {} hidden units instead of {}\n", trim.at("block").get<std::string>(),
               trim.at("to").get<int64_t>(), trim.at("from").get<int64_t>());
  }
}

}  // namespace adjoin::cli
