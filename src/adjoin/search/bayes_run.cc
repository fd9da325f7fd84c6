#include "adjoin/search/bayes_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "adjoin/core/atomic_file.h"
#include "adjoin/core/place.h"
#include "adjoin/core/progress_line.h"
#include "adjoin/core/rng.h"
#include "adjoin/core/table.h"
#include "adjoin/core/threads.h"
#include "adjoin/models/load.h"
#include "adjoin/search/halving.h"
#include "adjoin/search/job.h"
#include "adjoin/search/search_folder.h"
#include "adjoin/tensor/device.h"

namespace adjoin::search {
namespace {

constexpr auto kLongPause = std::chrono::milliseconds(200);

void check_alone(const train::Stages& stages) {
  if (stages.launch.size == 1) return;
  throw Error(ErrorKind::kUsage,
              "--method bayes: is for processes of their own, not of one group; say --jobs N, or "
              "start others with --join");
}

}  // namespace

BayesRun::BayesRun(SearchConfig config, std::string folder)
    : config_(with_teaching(std::move(config))),
      folder_(std::move(folder)),
      teacher_(folder_ + "/teacher/model.safetensors"),
      space_(exploration(config_, large_file(config_, teacher_))) {
  store::check_available();
  store::check_path(study_file());
  train::TrainConfig& training = config_.compress.train;
  training.dtype = train::dtype_name(train::choose_compute(training.device, training.dtype));
}

std::vector<std::string> BayesRun::notes() const {
  std::vector<std::string> notes = without_effect(config_);
  const int64_t epochs = trial_epochs(config_);
  const int64_t halving = config_.bayes.halving;
  if (halving != 0 && Halving{halving, epochs}.rungs().empty()) {
    notes.push_back(fmt::format("halving: is {}, so no trial of {} is stopped early", halving,
                                so_many(epochs, "epoch")));
  }
  const int64_t last = config_.bayes.tse_epochs;
  if (config_.bayes.reward_by == RewardBy::kTseE && last > epochs) {
    notes.push_back(
        fmt::format("tse_epochs: is {}, but a trial has {}", last, so_many(epochs, "epoch")));
  }
  const std::string& from = config_.compress.train.from;
  if (large_file(config_, teacher_) != from) {
    notes.push_back(fmt::format("{}: is not there; its copy {} is used", from, teacher_));
  }
  notes.push_back(feasible_text(space_));
  return notes;
}

std::string BayesRun::trial_folder(int64_t number) const {
  return fmt::format("{}/search/trial-{:03}", folder_, number);
}

std::pair<train::Job, std::string> BayesRun::first_job(const train::Launch& launch) const {
  const std::string& from = config_.compress.train.from;
  const bool is_taught = place_at(teacher_) == Place::kFile;  // of a search that goes on
  if (from.empty() && !is_taught) {
    return {prepare_teacher(config_, launch),
            fmt::format("the training of the teacher; {} of up to {} and the training of what is "
                        "found come after it",
                        so_many(config_.trials, "trial"), so_many(trial_epochs(config_), "epoch"))};
  }
  Rng rng(seed());
  return {prepare_student(config_, is_taught ? teacher_ : from, *space_.drawn(rng), Length::kTrial,
                          Images::kHeldIn, launch),
          "one of " + so_many(config_.trials, "trial")};
}

void BayesRun::take_folder(bool is_resumed) { hold_ = held(folder_, config_, is_resumed); }

void BayesRun::write_config() const {
  AtomicFile file(folder_ + "/config.yaml");
  file.write(config_yaml(config_));
  file.commit();
}

/// Adds the next networks to the study; false where there are none.
bool BayesRun::propose(const train::Stages& stages) {
  const std::vector<store::StoredTrial> trials = study_->trials();
  const int64_t known = std::ssize(trials);
  const Stopwatch watch;
  const History history = history_of(space_, trials);
  const Proposer way = way_now(config_.bayes.proposer, history);
  // While too little is known, one is drawn at a time: the next one may be learned already.
  const bool is_early = known > 0 && way != config_.bayes.proposer;
  const int64_t wanted = is_early ? 1 : config_.bayes.proposals;
  const int64_t count = std::min(wanted, config_.trials - known);
  if (count <= 0) return false;
  ProposerOptions options;
  options.between = [&] {
    if (stages.stop.received() != 0) throw Stopped{stages.stop.received()};
  };
  const std::vector<Choice> choices = search::propose(way, space_, history, count, seed(), options);
  if (choices.empty()) return false;
  std::vector<store::Proposal> proposals;
  for (const Choice& choice : choices) {
    proposals.push_back(proposal_of(space_, choice, way, config_.compress.train.seed));
    proposals.back().facts["proposal_seconds"] =
        watch.seconds() / static_cast<double>(choices.size());
  }
  study_->add(known, proposals);  // where another process was first, its networks are tried
  return true;
}

/// Whether trials took as long as the user gives them. What a process that died left behind does
/// not count: it would never be taken up again.
bool BayesRun::is_time_up() const {
  const double limit = config_.budget_minutes * 60;
  if (limit == 0) return false;
  const std::vector<int64_t> held = study_->held();
  std::vector<store::StoredTrial> trials = study_->trials();
  std::erase_if(trials, [&](const store::StoredTrial& trial) {
    return !trial.is_over() && !std::binary_search(held.begin(), held.end(), trial.number);
  });
  return sum_of(trials, kSeconds) >= limit;
}

/// One that waits, or that a process left behind when it died. Nothing when all are over.
std::optional<store::Claim> BayesRun::next_trial(const train::Stages& stages) {
  constexpr auto kPause = std::chrono::milliseconds(20);
  const store::Heeding heeding(*study_, stages.stop);
  bool is_told = false;
  int64_t known_then = -1;  // trials that were over when there was nothing to propose
  while (true) {
    if (stages.stop.received() != 0) throw Stopped{stages.stop.received()};
    if (study_->tally().over >= config_.trials || is_time_up()) return std::nullopt;
    if (auto claim = study_->claim()) return claim;
    if (const auto turn = study_->try_proposing()) {
      // What was proposed while we asked comes first.
      if (auto claim = study_->claim()) return claim;
      const int64_t known = study_->tally().over;
      if (known != known_then && propose(stages)) continue;
      known_then = known;
    } else {
      std::this_thread::sleep_for(kPause);  // another process is at it
      continue;
    }
    const int64_t open = study_->tally().open();
    if (open == 0) return std::nullopt;
    if (!is_told) stages.note({fmt::format("waiting for other processes; trials left: {}", open)});
    is_told = true;
    std::this_thread::sleep_for(kLongPause);
  }
}

/// How far the search is.
std::string BayesRun::outlook() const {
  const std::vector<store::StoredTrial> best = ranking(study_->trials());
  const int64_t over = study_->tally().over;
  std::string text = fmt::format("{} of {} over", over, std::max(over, config_.trials));
  if (!best.empty()) {
    text += fmt::format(", best {:.4f} (trial {})", *best[0].reward, best[0].number);
  }
  const auto since = static_cast<double>(over - over_then_);
  const auto left = static_cast<double>(config_.trials - over);
  return left > 0 && since > 0 ? text + ", " + left_text(since_.seconds() / since * left) : text;
}

/// Trials that others are at now, beyond those that are wanted here, may be the best.
void BayesRun::wait_for_others(const train::Stages& stages) const {
  const std::vector<int64_t> begun = study_->held();
  const auto are_over = [&] {
    const std::vector<int64_t> held = study_->held();
    return std::find_first_of(begun.begin(), begun.end(), held.begin(), held.end()) == begun.end();
  };
  const auto is_enough = [&] { return is_time_up() && !ranking(study_->trials()).empty(); };
  if (is_enough() || are_over()) return;
  stages.note({fmt::format("waiting for other processes, which are at {}",
                           so_many(std::ssize(begun), "trial"))});
  while (!is_enough() && !are_over()) {
    if (stages.stop.received() != 0) throw Stopped{stages.stop.received()};
    std::this_thread::sleep_for(kLongPause);
  }
}

void BayesRun::try_networks(const train::Stages& stages, const WithHelpers& with_helpers) {
  since_ = {};
  over_then_ = study_->tally().over;
  const int64_t left = config_.trials - over_then_;
  const int64_t jobs = std::clamp<int64_t>(left, 1, config_.bayes.jobs);
  const int all = torch::get_num_threads();
  const int share = std::max(1, available_cpus() / static_cast<int>(jobs));
  const int threads = jobs > 1 ? std::min(all, share) : all;
  const auto work = [&] {
    const Threads few(threads);
    try {
      while (const auto claim = next_trial(stages)) run_trial(*claim, stages);
    } catch (const Error& error) {
      if (jobs == 1 || error.kind() != ErrorKind::kMemory) throw;
      stages.note(
          {fmt::format("warning: {}; the others go on, and this process when they are "
                       "through; fewer --jobs need less memory",
                       error.what())});
    }
  };
  const auto failed = with_helpers(folder_, jobs - 1, threads, work);
  if (stages.stop.received() != 0) throw Stopped{stages.stop.received()};
  for (const auto& [worker, code] : failed) {
    constexpr int kKilled = 128;  // and the signal
    if (code > kKilled) {
      stages.note(
          {fmt::format("warning: worker {} was ended by signal {}", worker, code - kKilled)});
      continue;
    }
    stages.note(
        {fmt::format("warning: worker {0} ended with {1}; {2}/search/worker-{0}.log says why",
                     worker, code, folder_)});
  }
  // What a process that died, or had too little memory beside the others, left behind.
  while (const auto claim = next_trial(stages)) run_trial(*claim, stages);
  wait_for_others(stages);
  const int64_t tried = study_->tally().trials;
  if (tried < config_.trials && config_.budget_minutes == 0) {
    stages.note(
        {fmt::format("no other networks within the target were found; {} were tried, not {}", tried,
                     config_.trials)});
  }
}

Json BayesRun::join(const train::Stages& stages) {
  check_alone(stages);
  if (place_at(teacher_) != Place::kFile) {
    throw Error(ErrorKind::kData, teacher_ + ": the teacher of the search is not there");
  }
  open_study(models::content_hash(models::load(teacher_).weights), stages);
  worth();  // refuses where the teacher is still being measured
  if (place_at(start()) != Place::kFile) {
    throw Error(ErrorKind::kData, start() +
                                      ": is not there; the search itself makes it, with "
                                      "--resume");
  }
  since_ = {};
  over_then_ = study_->tally().over;
  int64_t count = 0;
  while (const auto claim = next_trial(stages)) {
    run_trial(*claim, stages);
    ++count;
  }
  if (count > 0 && place_at(folder_ + "/result.json") == Place::kFile) {
    stages.note(
        {fmt::format("{}/result.json is of before; --resume --output {} looks for the best "
                     "of all trials",
                     folder_, folder_)});
  }
  return {{"run", folder_}, {"joined", true}, {"trials", count}};
}

void BayesRun::search(const train::Stages& stages, const WithHelpers& with_helpers) {
  check_alone(stages);
  begin_study(stages);
  write_config();  // what other processes read
  make_folders(folder_ + "/search");
  for (const store::StoredTrial& trial : study_->trials()) {
    if (trial.is_over()) clear_weights(trial_folder(trial.number));  // of a process that died then
  }
  measure_baseline(stages);
  if (study_->tally().over < config_.trials) {
    const store::Heeding heeding(*study_, stages.stop);
    study_->set_fact("best", nullptr);  // until all are over
  }
  try_networks(stages, with_helpers);
}

}  // namespace adjoin::search
