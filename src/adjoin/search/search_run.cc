#include "adjoin/search/search_run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>

#include "adjoin/core/place.h"
#include "adjoin/core/progress.h"
#include "adjoin/core/rng.h"
#include "adjoin/core/stopwatch.h"
#include "adjoin/core/table.h"
#include "adjoin/search/scorer.h"
#include "adjoin/spec/architecture.h"

namespace adjoin::search {
namespace {

constexpr size_t kMostScoreBytes = size_t{1} << 30;

}  // namespace

SearchRun::SearchRun(SearchConfig config, std::string folder)
    : config_(std::move(config)), folder_(std::move(folder)), question_(question(config_)) {}

std::vector<std::string> SearchRun::notes() const {
  std::vector<std::string> notes = without_effect(config_);
  const std::vector<std::string> of_space = question_.space.notes();
  notes.insert(notes.end(), of_space.begin(), of_space.end());
  notes.push_back(feasible_text(question_.space));
  if (config_.method == Method::kEvolve && config_.trials <= kPopulation) {
    notes.push_back(fmt::format("the first {} trials are drawn at random: with {} nothing evolves",
                                kPopulation, config_.trials));
  }
  return notes;
}

std::pair<train::Job, std::string> SearchRun::first_job(const train::Launch& launch) const {
  switch (config_.method) {
    case Method::kDan: return {dan_job(launch), "the search; training is that of compress"};
    case Method::kUniform:
      return {prepare_training(config_, uniform().choice, launch), "the training"};
    default:
      if (!config_.score.empty()) {
        return {prepare_training(config_, proposal({}).choice, launch), "the training"};
      }
      return {prepare_trial(config_, proposal({}).choice, launch),
              fmt::format("one of {} trials; training is that of compress", config_.trials)};
  }
}

void SearchRun::search(const train::Stages& stages) {
  switch (config_.method) {
    case Method::kDan: {
      const train::RunResult result = stages.run(dan_job(stages.launch), folder_ + "/search");
      searched_ = result.evaluations;
      seconds_ = result.seconds;
      trials_ = 1;
      found_ = fitted_as(question_.space, written());
      break;
    }
    case Method::kUniform:
      found_ = uniform();
      if (stages.is_first()) write(found_);
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
  return prepare_training(config_, found_.choice, launch);
}

Json SearchRun::result() const {
  const Space& space = question_.space;
  const Price least = space.least();
  const Price most = space.most();
  const Price large = space.price(keep_everything(space.large()));
  Json trims = Json::array();
  for (const Trim& trim : found_.trims) {
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
  json["large"] = train::network_json(job.header.spec, trained.evaluations[0], file(job.name));
  json["small"] = train::network_json(job.inner[0].derived.spec, trained.evaluations[1],
                                      file(job.inner[0].name));
  json["epochs"] = trained.epochs;
  json["seconds"] = seconds_ + trained.seconds;
  return json;
}

train::Job SearchRun::dan_job(const train::Launch& launch) const {
  return prepare_dan(config_, question_, launch, folder_);
}

void SearchRun::write(const Fitted& fitted) const {
  write_architecture(folder_, question_.space.large(), fitted.choice);
}

/// What the first process wrote before the last step that all took together.
Choice SearchRun::written() const {
  const std::string file = architecture_file(folder_);
  return architecture_from_json(question_.space.large(), read_json_file(file), file);
}

Fitted SearchRun::uniform() const {
  auto found = fit_evenly(question_.space, question_.target);
  if (!found) {
    throw Error(ErrorKind::kUsage, question_.space.large().name +
                                       ": the target cannot be reached with all blocks alike");
  }
  return std::move(*found);
}

/// The next network to try: the first one proposed, or the best of some by a proxy.
Fitted SearchRun::proposal(const std::vector<Trial>& tried, const StopSignal* stop) const {
  const auto propose = config_.method == Method::kEvolve ? evolved_proposal : random_proposal;
  const auto proposed = [&](uint64_t by) {
    return propose(question_.space, question_.target, by, tried);
  };
  if (config_.prefilter.empty()) return proposed(seed());
  const Scorer scorer(question_.space, config_.prefilter, seed());
  std::vector<Trial> drawn;
  for (int64_t i = 0; i < config_.prefilter_of; ++i) {
    if (stop != nullptr && stop->received() != 0) throw Stopped{stop->received()};
    drawn.push_back({proposed(stream_key(seed(), {static_cast<uint64_t>(i)})), 0});
    drawn.back().worth = scorer(drawn.back().fitted.choice);
  }
  return best(drawn).fitted;
}

/// Judges networks by a proxy alone; scores.jsonl gets a line for each. What was found before, in
/// a run that goes on, stays.
void SearchRun::score_networks(const train::Stages& stages) {
  if (stages.launch.size > 1) {
    throw Error(ErrorKind::kUsage,
                "--score: is for one process; search with --no-retrain, then train what was found "
                "by adjoin compress --alphas @RUN/architecture.json");
  }
  const std::string kept = folder_ + "/scores.jsonl";
  if (place_at(kept) == Place::kFile) {
    const std::string lines = read_text_file(kept, kMostScoreBytes);
    trials_ = std::count(lines.begin(), lines.end(), '\n');
    found_ = fitted_as(question_.space, written());
    return;
  }
  const Scorer scorer(question_.space, config_.score, seed());
  Progress progress(std::cerr, stages.progress);
  progress.begin("networks scored", config_.trials);
  const Stopwatch watch;
  const double limit = config_.budget_minutes * 60;
  std::vector<Trial> tried;
  std::string lines;
  while (static_cast<int64_t>(tried.size()) < config_.trials) {
    if (!tried.empty() && limit > 0 && seconds_ >= limit) break;
    if (stages.stop.received() != 0) {
      progress.note("adjoin: stopped; scores are not kept until all are there");
      throw Stopped{stages.stop.received()};
    }
    const Fitted next = proposal(tried);
    tried.push_back({next, scorer(next.choice)});
    lines += Json({{"alphas", next.alphas},
                   {"macs", next.price.macs},
                   {"params", next.price.params},
                   {config_.score, tried.back().worth}})
                 .dump() +
             "\n";
    progress.update(static_cast<int64_t>(tried.size()), config_.score);
    seconds_ = watch.seconds();
  }
  progress.finish("");
  trials_ = static_cast<int64_t>(tried.size());
  found_ = best(tried).fitted;
  SearchRun::write(found_);
  hold_->write("scores.jsonl", lines);
}

void SearchRun::try_networks(const train::Stages& stages) {
  std::vector<Trial> tried;
  const double limit = config_.budget_minutes * 60;
  while (static_cast<int64_t>(tried.size()) < config_.trials) {
    if (!tried.empty() && limit > 0 && seconds_ >= limit) break;
    const Fitted next = proposal(tried, &stages.stop);
    const std::string folder = fmt::format("{}/search/trial-{:03}", folder_, tried.size());
    const train::RunResult result =
        stages.run(prepare_trial(config_, next.choice, stages.launch), folder);
    tried.push_back({next, result.evaluations[1].top1});
    seconds_ += result.seconds;
    if (stages.is_first()) {
      stages.note({fmt::format("trial {}: {:.2f} % with {}", tried.size(), tried.back().worth,
                               fmt::join(next.alphas, ","))});
    }
  }
  trials_ = static_cast<int64_t>(tried.size());
  found_ = best(tried).fitted;
  if (stages.is_first()) write(found_);
}

}  // namespace adjoin::search
