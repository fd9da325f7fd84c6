#pragma once

// adjoin search by every method but bayes, from the question to its result; the training of what
// was found is a run like that of compress.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adjoin/cli/run_command.h"
#include "adjoin/search/job.h"
#include "adjoin/search/trials.h"
#include "adjoin/train/run_folder.h"

namespace adjoin::cli {

/// Takes hold of the folder of a search, until the training that follows does. A search that is
/// there goes on only where --resume says so.
std::unique_ptr<train::RunFolder> held(const std::string& folder,
                                       const search::SearchConfig& config, bool is_resumed);

/// Error(kConfig) when a search that goes on in the folder is another one.
void check_unchanged(const search::SearchConfig& config, const std::string& folder);

class SearchRun {
 public:
  SearchRun(search::SearchConfig config, std::string folder);

  /// What the user should know before anything begins.
  std::vector<std::string> notes() const;

  /// Of a dry run: the first job, and what part of the whole it is.
  std::pair<train::Job, std::string> first_job(const train::Launch& launch) const;

  /// Until the training that follows begins.
  void take_folder(bool is_resumed) { hold_ = held(folder_, config_, is_resumed); }

  /// Looks for the architecture, and writes it to the folder.
  void search(const Stages& stages);

  train::Job training(const train::Launch& launch) const;

  /// Of the search alone.
  Json result() const;

  /// And of the training.
  Json result(const train::Job& job, const train::RunResult& trained) const;

  const search::SearchConfig& config() const { return config_; }

 private:
  train::Job dan_job(const train::Launch& launch) const;
  void write(const search::Fitted& fitted) const;
  Choice written() const;
  search::Fitted uniform() const;
  uint64_t seed() const { return static_cast<uint64_t>(config_.compress.train.seed); }
  search::Fitted proposal(const std::vector<search::Trial>& tried,
                          const StopSignal* stop = nullptr) const;
  void score_networks(const Stages& stages);
  void try_networks(const Stages& stages);

  search::SearchConfig config_;
  std::string folder_;
  search::Question question_;
  std::unique_ptr<train::RunFolder> hold_;
  search::Fitted found_;
  std::vector<train::Evaluation> searched_;
  int64_t trials_ = 0;
  double seconds_ = 0;
};

/// ", 99.8 % of the target of 1.2 G macs": how much of each target is used.
std::string used_of_target(const Json& run);

/// A line or more for people.
void print_architecture(const Json& run);

}  // namespace adjoin::cli
