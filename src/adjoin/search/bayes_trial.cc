// One trial of a search: a network is trained for a short while, and the study is told what it
// comes to.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "adjoin/core/place.h"
#include "adjoin/core/table.h"
#include "adjoin/search/bayes_run.h"
#include "adjoin/search/halving.h"
#include "adjoin/search/job.h"

namespace adjoin::search {
namespace {

using store::TrialState;

/// How often the process of a trial may end without another checkpoint.
constexpr int64_t kMostAttempts = 10;

/// Facts of a trial: how often it was begun, in all and before it had its checkpoint, and that.
constexpr const char* kAttempts = "attempts";
constexpr const char* kAttemptsThen = "attempts_then";
constexpr const char* kCheckpoint = "checkpoint";

/// When a file was written; null where there is none.
Json time_of(const std::string& path) {
  const std::optional<int64_t> time = written_at(path);
  return time ? Json(*time) : Json();
}

void remove_files(const std::string& folder, std::initializer_list<const char*> names) {
  for (const char* name : names) unlink((folder + "/" + name).c_str());  // where there is one
}

/// What a trial came to, epoch by epoch.
struct Curve {
  std::vector<double> losses;
  std::vector<double> tops;

  int64_t epochs() const { return std::min(std::ssize(losses), std::ssize(tops)); }

  /// `epoch` counts from 0; it and later ones, where they are known, were trained again.
  void add(int64_t epoch, const train::EpochReport& report) {
    losses.resize(static_cast<size_t>(epoch));
    tops.resize(static_cast<size_t>(epoch));
    losses.push_back(report.train_loss);
    tops.push_back(report.evaluations[0].top1);
  }
};

Curve curve_of(const store::StoredTrial& trial) {
  const std::string name = name_of(trial);
  return {numbers_of(trial.facts, "losses", name), numbers_of(trial.facts, "tops", name)};
}

}  // namespace

void BayesRun::clear_weights(const std::string& trial) const {
  remove_files(trial, {"last.ckpt", "small.safetensors", "best.safetensors", "predictions.json"});
}

void BayesRun::clear_folder(const std::string& run) const {
  clear_weights(run);
  remove_files(run,
               {"large.safetensors", "small.onnx", "summary.csv", "result.json", "report.html"});
  // Who holds the folder holds its log.
  const std::string log = run + "/log.jsonl";
  if (place_at(log) == Place::kFile && truncate(log.c_str(), 0) != 0) {
    throw Error(ErrorKind::kIo, fmt::format("{}: cannot be cut: {}", log, std::strerror(errno)));
  }
}

/// Of a network whose reward looks at it; measured once.
std::optional<Latency> BayesRun::latency_of(const store::StoredTrial& trial) {
  if (config_.bayes.reward_cost != RewardCost::kLatency) return std::nullopt;
  const std::vector<double> known = numbers_of(trial.facts, "latency", name_of(trial));
  if (known.size() == 2) return Latency{known[0], known[1]};
  const Latency latency = measured_latency(space_, choice_of(space_, trial));
  study_->set_facts(trial.number,
                    {{"latency", {latency.large, latency.small}}, {"latency_ms", latency.small}});
  return latency;
}

void BayesRun::run_trial(const store::Claim& claim, const train::Stages& stages) {
  const store::StoredTrial& trial = claim.trial();
  const std::string folder = trial_folder(trial.number);
  const std::string name = name_of(trial);
  const auto attempts = static_cast<int64_t>(number_of(trial.facts, kAttempts, name));
  const bool is_new = !trial.facts.contains(kAttemptsThen);
  if (is_new) clear_folder(folder);  // what lies there is of another study
  const Stopwatch watch;
  const auto fail = [&](const std::string& why) {
    const double before = number_of(trial.facts, kSeconds, name);
    study_->finish(trial.number, TrialState::kFailed, std::nan(""),
                   {{"failure", why}, {kSeconds, before + watch.seconds()}});
    stages.note({fmt::format("trial {}: failed: {}", trial.number, why)});
  };
  const auto then = static_cast<int64_t>(number_of(trial.facts, kAttemptsThen, name));
  const Json checkpoint = time_of(folder + "/last.ckpt");
  if (is_new || trial.facts.value(kCheckpoint, Json()) != checkpoint) {  // it came further
    study_->set_facts(trial.number, {{kAttemptsThen, attempts - 1}, {kCheckpoint, checkpoint}});
  } else if (attempts - then > kMostAttempts) {
    fail(fmt::format("its process ended {} times without another checkpoint", kMostAttempts));
    return clear_weights(folder);
  }
  const auto forgive = [&] {
    const store::Heeding heeding(*study_, stages.stop);
    try {
      study_->set_facts(trial.number, {{kAttemptsThen, attempts}});
    } catch (const Stopped&) {  // what ended the trial is what counts
    } catch (const Error&) {
    }
  };
  try {
    train_trial(trial, stages);
  } catch (const Stopped&) {
    forgive();
    throw;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kMemory) throw;
    if (error.kind() != ErrorKind::kNumeric) {
      forgive();
      throw;
    }
    fail(error.what());
  }
  clear_weights(folder);
}

void BayesRun::train_trial(const store::StoredTrial& trial, const train::Stages& stages) {
  const std::string folder = trial_folder(trial.number);
  const Choice choice = choice_of(space_, trial);
  const Price price = space_.price(choice);
  const Worth worth = this->worth();
  const std::optional<Latency> latency = latency_of(trial);
  const int64_t epochs = trial_epochs(config_);
  const Halving halving{config_.bayes.halving, epochs};
  Curve curve = curve_of(trial);
  const auto reward = [&] { return worth(price, latency, curve.losses, curve.tops); };
  train::Job job =
      prepare_student(config_, start(), choice, Length::kTrial, Images::kHeldIn, stages.launch);
  if (trial.number > 0) job.notes.clear();  // those of the first
  job.is_enough = [&](double time, const train::EpochReport& report) {
    const int64_t epoch = std::llround(time * static_cast<double>(epochs));
    if (curve.epochs() < epoch) {
      throw Error(
          ErrorKind::kData,
          fmt::format("{}: knows {} of trial {}, but {}/last.ckpt is of epoch {}; put the "
                      "study that belongs to it back, or remove the checkpoint",
                      study_file(), so_many(curve.epochs(), "epoch"), trial.number, folder, epoch));
    }
    curve.add(epoch, report);
    study_->report(trial.number, epoch, reward(),
                   {{"losses", curve.losses},
                    {"tops", curve.tops},
                    {"top1", curve.tops.back()},
                    {kSeconds, report.seconds}});
    const int64_t done = epoch + 1;
    return halving.compares_at(done) &&
           halving.is_over(done, reward(), rewards_after(done, trial.number, study_->trials()));
  };
  const train::RunResult result = stages.go_on(std::move(job), folder);
  if (curve.epochs() == 0)
    throw Error(ErrorKind::kData, folder + ": the study knows no epoch of it");
  const bool is_whole = result.epochs >= epochs;
  study_->finish(trial.number, is_whole ? TrialState::kComplete : TrialState::kPruned, reward(),
                 {{kSeconds, result.seconds}});
  stages.note({fmt::format(
      "trial {}: reward {:.4f}, {:.2f} % with {} MACs{}; {}", trial.number, reward(),
      curve.tops.back(), short_count(static_cast<double>(price.macs)),
      is_whole ? "" : fmt::format(", stopped after {} of {} epochs", result.epochs, epochs),
      outlook())});
}

}  // namespace adjoin::search
