#pragma once

// A search by trials from end to end: the teacher, the study and its trials, by one process or
// several, and the training of the best.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adjoin/core/stopwatch.h"
#include "adjoin/search/candidate.h"
#include "adjoin/search/trial_book.h"
#include "adjoin/train/run_folder.h"
#include "adjoin/train/stages.h"

namespace adjoin::search {

/// Facts of a study: of each trial, of its teacher's training, and of that trials are compared
/// with.
inline constexpr const char* kSeconds = "seconds";
inline constexpr const char* kTeacherSeconds = "teacher_seconds";
inline constexpr const char* kBaselineSeconds = "baseline_seconds";

/// Does `work` beside `count` more processes that join the search in a folder, with so many threads
/// each, and waits for them. Those that failed: numbers from 1, and exit codes.
using WithHelpers = std::function<std::vector<std::pair<int64_t, int>>(
    const std::string& folder, int64_t count, int threads, const std::function<void()>& work)>;

class BayesRun {
 public:
  BayesRun(SearchConfig config, std::string folder);

  std::vector<std::string> notes() const;

  /// Of a dry run: the first job, and what part of the whole it is.
  std::pair<train::Job, std::string> first_job(const train::Launch& launch) const;

  /// Keeps other searches from the folder for as long as this one lives, but for a training there,
  /// which keeps others from it itself.
  void take_folder(bool is_resumed);

  /// The teacher, and all trials.
  void search(const train::Stages& stages, const WithHelpers& with_helpers);

  /// The training of the best, where one is wanted; the result, {"small": {"file", ..}, ..} of a
  /// training.
  Json finish(const train::Stages& stages);

  /// Trials of a search that another process began, until none is left.
  Json join(const train::Stages& stages);

 private:
  // The large network, and the study that is about it: bayes_teacher.cc
  void begin_study(const train::Stages& stages);
  std::string teacher_of_study(const train::Stages& stages) const;
  void train_teacher(const std::string& known, const train::Stages& stages);
  void take_teacher(const train::Stages& stages);
  void order_teacher(const train::Stages& stages);
  std::string start() const;
  void open_study(const std::string& teacher_hash, const train::Stages& stages);
  void measure_baseline(const train::Stages& stages);
  Worth worth() const;

  // Which trials there are, and who is at them: bayes_run.cc
  void write_config() const;
  void try_networks(const train::Stages& stages, const WithHelpers& with_helpers);
  std::optional<store::Claim> next_trial(const train::Stages& stages);
  bool propose(const train::Stages& stages);
  bool is_time_up() const;
  void wait_for_others(const train::Stages& stages) const;
  std::string outlook() const;

  // One trial: bayes_trial.cc
  void run_trial(const store::Claim& claim, const train::Stages& stages);
  void train_trial(const store::StoredTrial& trial, const train::Stages& stages);
  std::optional<Latency> latency_of(const store::StoredTrial& trial);
  std::string trial_folder(int64_t number) const;
  void clear_weights(const std::string& trial) const;
  void clear_folder(const std::string& run) const;

  // What follows the trials: bayes_finish.cc
  struct Winner {
    store::StoredTrial trial;
    int64_t epochs = 0;              // of its training
    double seconds = 0;              // of all of them
    Json finalists = Json::array();  // where there were several
  };
  std::vector<store::StoredTrial> best_ones() const;
  const store::StoredTrial& chosen(const std::vector<store::StoredTrial>& best) const;
  std::string final_kind() const;
  std::optional<Json> train_best(const std::vector<store::StoredTrial>& best,
                                 const train::Stages& stages);
  std::optional<Winner> trained_alone(const store::StoredTrial& best, const train::Stages& stages);
  std::optional<Winner> trained_finalists(const std::vector<store::StoredTrial>& best,
                                          const train::Stages& stages);
  std::optional<train::RunResult> trained(const store::StoredTrial& trial, Images images,
                                          const std::string& folder, const train::Stages& stages);
  std::string final_folder(int64_t trial) const;
  void claim_folder(const std::string& folder, const Json& about, const train::Stages& stages);
  void keep_previous(const train::Stages& stages) const;
  void take_finalist(const store::StoredTrial& trial, const std::string& folder,
                     const train::Stages& stages);
  Json untrained(const store::StoredTrial& best, const train::Stages& stages);
  Json summary(const store::StoredTrial& best) const;

  uint64_t seed() const { return static_cast<uint64_t>(config_.compress.train.seed); }
  std::string study_file() const { return folder_ + "/study.db"; }

  SearchConfig config_;
  std::string folder_;
  std::string teacher_;  // the large network's file, in the folder
  Exploration space_;
  std::optional<store::Study> study_;
  Stopwatch since_;        // trials are tried here
  int64_t over_then_ = 0;  // of them
  std::unique_ptr<train::RunFolder> hold_;
};

}  // namespace adjoin::search
