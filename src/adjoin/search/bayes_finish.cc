// What follows the trials of a search: the best are trained in full, the winner is handed over.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "adjoin/core/atomic_file.h"
#include "adjoin/core/place.h"
#include "adjoin/core/table.h"
#include "adjoin/models/load.h"
#include "adjoin/search/bayes_run.h"
#include "adjoin/search/job.h"
#include "adjoin/spec/architecture.h"

namespace adjoin::search {
namespace {

using store::TrialState;

/// A fact of the study: which trial was trained in full in its folder, and how; with the name of a
/// folder in it behind it, the same of that one.
constexpr const char* kFinal = "final:";

/// A fact of a trial: why it could not be trained in full, by the way it was.
constexpr const char* kFailures = "final_failures";

/// In a result: of all trials, and of proposing them.
constexpr const char* kSearchSeconds = "search_seconds";

/// In a run folder.
constexpr const char* kLarge = "/large.safetensors";
constexpr const char* kSmall = "/small.safetensors";

/// How many trials have come to what.
Json counted(const std::vector<store::StoredTrial>& trials) {
  Json counts = {{"complete", 0}, {"stopped", 0}, {"failed", 0}, {"open", 0}};
  for (const store::StoredTrial& trial : trials) {
    const char* const which = trial.state == TrialState::kComplete ? "complete"
                              : trial.state == TrialState::kPruned ? "stopped"
                              : trial.state == TrialState::kFailed ? "failed"
                                                                   : "open";
    counts[which] = counts[which].get<int64_t>() + 1;
  }
  return counts;
}

/// Whether a result.json is that of networks that were trained. Anything may stand in a file.
bool is_trained(const Json& result) {
  if (!result.is_object()) return false;
  const auto is_network = [&](const char* name) {
    const Json network = result.value(name, Json());
    const auto has_number = [&](const char* what) {
      return network.value(what, Json()).is_number();
    };
    return network.is_object() && network.value("file", Json()).is_string() && has_number("top1") &&
           has_number("macs") && has_number("params");
  };
  const auto is_number = [&](const char* name) { return result.value(name, Json()).is_number(); };
  const Json finalists = result.value("finalists", Json::array());
  const auto is_trial = [](const Json& one) {
    return one.is_object() && one.value("trial", Json()).is_number_integer() &&
           one.value("top1_set_aside", Json()).is_number();
  };
  return is_network("large") && is_network("small") && is_number("seconds") &&
         is_number(kSearchSeconds) && finalists.is_array() &&
         std::all_of(finalists.begin(), finalists.end(), is_trial);
}

/// What stands in result.json; nothing where that cannot be read.
Json result_in(const std::string& folder) {
  const std::string file = folder + "/result.json";
  if (place_at(file) != Place::kFile) return {};
  try {
    return read_json_file(file);
  } catch (const Error&) {
    return {};
  }
}

/// A copy of a file where there is one.
void copy_file(const std::string& from, const std::string& to) {
  constexpr size_t kMostBytes = size_t{1} << 30;
  if (place_at(from) != Place::kFile) return;
  AtomicFile file(to);
  file.write(read_text_file(from, kMostBytes));
  file.commit();
}

}  // namespace

Json BayesRun::summary(const store::StoredTrial& best) const {
  const std::vector<store::StoredTrial> trials = study_->trials();
  const Price least = space_.least();
  const Price most = space_.price(space_.whole());
  const Choice choice = choice_of(space_, best);
  const Price price = space_.price(choice);
  const double trained = sum_of(trials, kSeconds);
  const double proposed = sum_of(trials, "proposal_seconds");
  double before = 0;
  for (const char* fact : {kTeacherSeconds, kBaselineSeconds}) {
    const Json seconds = study_->fact(fact);
    before += seconds.is_number() ? seconds.get<double>() : 0;
  }
  return {
      {"run", folder_},
      {"method", "bayes"},
      {"trials", trials.size()},
      {"states", counted(trials)},
      {"attempts", static_cast<int64_t>(sum_of(trials, "attempts"))},
      {"architecture", architecture_to_json(space_.large(), choice)},
      {"alphas", Json::array()},
      {"feasible", {{"macs", {least.macs, most.macs}}, {"params", {least.params, most.params}}}},
      {"target", space_.limits().json()},
      {"best", best.number},
      {"reward", *best.reward},
      {"search_top1",
       {{"large", study_->fact("teacher").at("top1")},
        {"searched", number_of(best.facts, "top1", name_of(best))}}},
      {"macs", price.macs},
      {"params", price.params},
      {"large", {{"macs", most.macs}, {"params", most.params}}},
      {"small", {{"macs", price.macs}, {"params", price.params}}},
      {"proposal_seconds", proposed},
      {kSearchSeconds, trained + proposed},
      {"seconds", trained + proposed + before}};
}

/// How the best are trained in full now. One alone sees all images.
std::string BayesRun::final_kind() const {
  return (config_.bayes.finalists > 1 ? "finalist by " : "") + final_way(config_);
}

std::string BayesRun::final_folder(int64_t trial) const {
  return fmt::format("{}/final-{:03}", folder_, trial);
}

/// Those that are to be trained in full, the best first. What could not be is left out.
std::vector<store::StoredTrial> BayesRun::best_ones() const {
  std::vector<store::StoredTrial> best = ranking(study_->trials());
  std::erase_if(best, [&](const store::StoredTrial& trial) {
    const Json failures = trial.facts.value(kFailures, Json());
    return failures.is_object() && failures.contains(final_kind());
  });
  best.resize(std::min(best.size(), static_cast<size_t>(config_.bayes.finalists)));
  return best;
}

/// The one whose network stands in the folder, where it won among those that would be trained in
/// full now; else the first.
const store::StoredTrial& BayesRun::chosen(const std::vector<store::StoredTrial>& best) const {
  const Json trained = study_->fact(kFinal);
  if (best.size() == 1 || !trained.is_object()) return best.front();
  if (trained.value("training", Json()) != final_kind()) return best.front();
  const auto found = std::find_if(best.begin(), best.end(), [&](const store::StoredTrial& trial) {
    return trained.value("trial", Json()) == trial.number;
  });
  return found == best.end() ? best.front() : *found;
}

Json BayesRun::finish(const train::Stages& stages) {
  const std::vector<store::StoredTrial> whole = ranking(study_->trials());
  if (whole.empty()) {
    throw Error(ErrorKind::kNumeric,
                fmt::format("{}: none of the trials was trained to the end; give more --trials or "
                            "--budget-minutes, or begin another search with a smaller --lr where "
                            "they failed",
                            folder_));
  }
  if (stages.stop.received() != 0) throw Stopped{stages.stop.received()};
  draw_map(space_, *study_, seed());
  if (stages.stop.received() != 0) throw Stopped{stages.stop.received()};
  while (true) {
    const std::vector<store::StoredTrial> best = best_ones();
    if (best.empty()) {
      write_architecture(folder_, space_.large(), choice_of(space_, whole[0]));
      throw Error(ErrorKind::kNumeric,
                  fmt::format("{0}: nothing that was found can be trained in full; the best of it "
                              "is {0}/architecture.json, for adjoin compress with a smaller --lr",
                              folder_));
    }
    const store::StoredTrial& first = chosen(best);
    study_->set_fact("best", first.number);
    study_->set_fact("best_of", study_->tally().over);
    write_architecture(folder_, space_.large(), choice_of(space_, first));
    if (!config_.retrain) return untrained(first, stages);
    if (const std::optional<Json> result = train_best(best, stages)) return *result;
  }
}

/// The result without another training: with what was trained of the best before, where that was.
Json BayesRun::untrained(const store::StoredTrial& best, const train::Stages& stages) {
  Json result = summary(best);
  const Json trained = study_->fact(kFinal);
  const Json which = trained.is_object() ? trained.value("trial", Json()) : Json();
  if (which.is_null()) return result;
  if (which != best.number) {
    // A training that was cut off stays until there is another.
    if (place_at(folder_ + kSmall) == Place::kFile) claim_folder(folder_, nullptr, stages);
    stages.note({fmt::format("trial {} is the best now; --retrain trains it", best.number)});
    return result;
  }
  const Json before = result_in(folder_);
  if (!is_trained(before) || before.value("best", Json()) != best.number) return result;
  // The folder may have been moved.
  const auto then = before.at("large").at("file").get<std::string>();
  const std::string large = then.ends_with(kLarge) ? folder_ + kLarge : teacher_;
  for (const std::string& network : {large, folder_ + kSmall}) {
    if (place_at(network) == Place::kFile) continue;
    throw Error(ErrorKind::kIo, network +
                                    ": is not there; put it back, or make it again with "
                                    "--retrain");
  }
  for (const char* part : {"large", "small", "finalists", "epochs"}) {
    if (before.contains(part)) result[part] = before.at(part);
  }
  result["large"]["file"] = large;
  result["small"]["file"] = folder_ + kSmall;
  if (result.contains("finalists")) {
    for (Json& one : result["finalists"]) {
      one["file"] = final_folder(one.at("trial").get<int64_t>()) + kSmall;
    }
  }
  const auto seconds = [](const Json& of, const char* name) { return of.at(name).get<double>(); };
  const double since = seconds(result, kSearchSeconds) - seconds(before, kSearchSeconds);
  result["seconds"] = seconds(before, "seconds") + since;
  return result;
}

/// The run of an earlier winner is moved to previous/1, that of the next to previous/2, .. The
/// small network last: without it a move was cut off, and goes on.
void BayesRun::keep_previous(const train::Stages& stages) const {
  if (place_at(folder_ + kSmall) != Place::kFile) return;
  int64_t number = 1;
  const auto previous = [&] { return fmt::format("{}/previous/{}", folder_, number); };
  while (place_at(previous() + kSmall) == Place::kFile) ++number;
  make_folders(previous());
  for (const char* name : {"/config.yaml", "/log.jsonl"}) {  // which we hold
    copy_file(folder_ + name, previous() + name);
  }
  for (const char* name : {kLarge, "/small.onnx", "/best.safetensors", "/predictions.json",
                           "/summary.csv", "/result.json", kSmall}) {
    if (place_at(folder_ + name) != Place::kFile) continue;
    const std::string to = previous() + name;
    if (std::rename((folder_ + name).c_str(), to.c_str()) != 0) {
      throw Error(ErrorKind::kIo,
                  fmt::format("{}: cannot be written: {}", to, std::strerror(errno)));
    }
  }
  stages.note({fmt::format("what was trained in {} before is in {}", folder_, previous())});
}

/// Takes care that a final training in `folder` goes on only if it is about the same: which trial,
/// and how it is trained. What was trained there and is about something else is kept.
void BayesRun::claim_folder(const std::string& folder, const Json& about,
                            const train::Stages& stages) {
  const std::string fact = kFinal + folder.substr(folder_.size());
  const Json before = study_->fact(fact);
  if (before == about) return;
  if (folder == folder_) keep_previous(stages);
  clear_folder(folder);
  study_->set_fact(fact, about);
}

/// A trial in full; nothing, and that is kept, where the training has no end.
std::optional<train::RunResult> BayesRun::trained(const store::StoredTrial& trial, Images images,
                                                  const std::string& folder,
                                                  const train::Stages& stages) {
  claim_folder(folder, {{"trial", trial.number}, {"training", final_way(config_)}}, stages);
  const Choice choice = choice_of(space_, trial);
  const bool is_adjoined = config_.bayes.final_training == FinalTraining::kAdjoined;
  train::Job job = is_adjoined ? prepare_adjoined(config_, start(), choice, images, stages.launch)
                               : prepare_student(config_, start(), choice, Length::kWhole, images,
                                                 stages.launch);
  if (folder == folder_) hold_.reset();  // the training takes it, and we when it is over
  try {
    const train::RunResult result = stages.go_on(std::move(job), folder);
    if (!hold_) hold_ = std::make_unique<train::RunFolder>(folder_, /*may_exist=*/true);
    return result;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kNumeric) throw;
    if (!hold_) hold_ = std::make_unique<train::RunFolder>(folder_, /*may_exist=*/true);
    Json failures = trial.facts.value(kFailures, Json());
    if (!failures.is_object()) failures = Json::object();
    failures[final_kind()] = error.what();
    study_->set_facts(trial.number, {{kFailures, failures}});
    stages.note({fmt::format("warning: trial {} cannot be trained in full: {}", trial.number,
                             error.what())});
    return std::nullopt;
  }
}

std::optional<BayesRun::Winner> BayesRun::trained_alone(const store::StoredTrial& best,
                                                        const train::Stages& stages) {
  const auto result = trained(best, Images::kAll, folder_, stages);
  if (!result) return std::nullopt;
  return Winner{best, result->epochs, result->seconds};
}

/// The best by the images set aside, which none of them learns from.
std::optional<BayesRun::Winner> BayesRun::trained_finalists(
    const std::vector<store::StoredTrial>& best, const train::Stages& stages) {
  Winner winner;
  double top = -1;
  for (const store::StoredTrial& trial : best) {
    const auto result = trained(trial, Images::kHeldIn, final_folder(trial.number), stages);
    if (!result) return std::nullopt;
    winner.seconds += result->seconds;
    const double top1 = result->evaluations.back().top1;  // of the small network
    winner.finalists.push_back({{"trial", trial.number},
                                {"reward", *trial.reward},
                                {"top1_set_aside", top1},
                                {"file", final_folder(trial.number) + kSmall}});
    if (top1 <= top) continue;
    winner.trial = trial;
    winner.epochs = result->epochs;
    top = top1;
  }
  take_finalist(winner.trial, final_folder(winner.trial.number), stages);
  return winner;
}

/// The result; nothing where the training of one failed.
std::optional<Json> BayesRun::train_best(const std::vector<store::StoredTrial>& best,
                                         const train::Stages& stages) {
  const std::optional<Winner> winner = config_.bayes.finalists == 1
                                           ? trained_alone(best.front(), stages)
                                           : trained_finalists(best, stages);
  if (!winner) return std::nullopt;
  Json result = summary(winner->trial);
  if (!winner->finalists.empty()) result["finalists"] = winner->finalists;
  const auto network = [&](const std::string& path) {
    return train::network_json(models::load(path).header.spec,
                               judged(config_, path, JudgedBy::kValidation, stages.launch), path);
  };
  const bool is_adjoined = config_.bayes.final_training == FinalTraining::kAdjoined;
  result["large"] = network(is_adjoined ? folder_ + kLarge : teacher_);
  result["small"] = network(folder_ + kSmall);
  result["epochs"] = winner->epochs;
  result["seconds"] = result["seconds"].get<double>() + winner->seconds;
  return result;
}

/// What was trained in `folder` is that of the whole search.
void BayesRun::take_finalist(const store::StoredTrial& trial, const std::string& folder,
                             const train::Stages& stages) {
  claim_folder(folder_, {{"trial", trial.number}, {"training", final_kind()}}, stages);
  for (const char* name : {kLarge, kSmall}) {
    if (place_at(folder + name) != Place::kFile) continue;
    const models::Model won = models::load(folder + name);
    models::save(folder_ + name, won.header, won.weights);
  }
  write_architecture(folder_, space_.large(), choice_of(space_, trial));
  study_->set_fact("best", trial.number);
}

}  // namespace adjoin::search
