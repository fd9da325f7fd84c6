#pragma once

// A search by every method but bayes, from the question to its result; the training of what was
// found is a run like that of compress.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adjoin/search/job.h"
#include "adjoin/search/search_folder.h"
#include "adjoin/search/trials.h"
#include "adjoin/train/run_folder.h"
#include "adjoin/train/stages.h"

namespace adjoin::search {

class SearchRun {
 public:
  SearchRun(SearchConfig config, std::string folder);

  /// What the user should know before anything begins.
  std::vector<std::string> notes() const;

  /// Of a dry run: the first job, and what part of the whole it is.
  std::pair<train::Job, std::string> first_job(const train::Launch& launch) const;

  /// Until the training that follows begins.
  void take_folder(bool is_resumed) { hold_ = held(folder_, config_, is_resumed); }

  /// Looks for the architecture, and writes it to the folder.
  void search(const train::Stages& stages);

  train::Job training(const train::Launch& launch) const;

  /// Of the search alone.
  Json result() const;

  /// And of the training.
  Json result(const train::Job& job, const train::RunResult& trained) const;

  const SearchConfig& config() const { return config_; }

 private:
  train::Job dan_job(const train::Launch& launch) const;
  void write(const Fitted& fitted) const;
  Choice written() const;
  Fitted uniform() const;
  uint64_t seed() const { return static_cast<uint64_t>(config_.compress.train.seed); }
  Fitted proposal(const std::vector<Trial>& tried, const StopSignal* stop = nullptr) const;
  void score_networks(const train::Stages& stages);
  void try_networks(const train::Stages& stages);

  SearchConfig config_;
  std::string folder_;
  Question question_;
  std::unique_ptr<train::RunFolder> hold_;
  Fitted found_;
  std::vector<train::Evaluation> searched_;
  int64_t trials_ = 0;
  double seconds_ = 0;
};

}  // namespace adjoin::search
