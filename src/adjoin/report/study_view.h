#pragma once

// A study as pages see it: what each trial says of itself, as far as it can be read, and who wins.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adjoin/core/json.h"
#include "adjoin/spec/choice.h"
#include "adjoin/spec/model_spec.h"
#include "adjoin/store/study.h"

namespace adjoin::report {

struct StudyTrial {
  int64_t number = 0;
  store::TrialState state = store::TrialState::kWaiting;
  /// Of one that was stopped early or is still running without any: what its last epoch gave.
  std::optional<double> reward = {};
  std::optional<double> top1 = {};  ///< percent, on images set aside
  std::optional<double> macs = {};
  std::optional<double> params = {};
  std::optional<double> seconds = {};
  std::optional<double> latency_ms = {};
  std::optional<std::pair<double, double>> point = {};  ///< in the learned embedding
  std::string proposer = {};
  std::optional<Choice> choice = {};  ///< of the large network

  bool is_complete() const { return state == store::TrialState::kComplete; }
};

/// What a network costs and reaches, or is to cost.
struct StudyCosts {
  std::optional<double> top1 = {};
  std::optional<double> macs = {};
  std::optional<double> params = {};
};

struct StudyView {
  std::vector<StudyTrial> trials;  ///< by number
  StudyCosts teacher = {};
  StudyCosts target = {};
  std::optional<size_t> winner = {};  ///< which of `trials`: the one chosen, or the best so far
  bool is_chosen = false;             ///< the study names its winner
  /// The large network and the winner, where both are known.
  std::optional<std::pair<ModelSpec, ModelSpec>> drawn = {};

  const StudyTrial* best() const { return winner ? &trials[*winner] : nullptr; }
};

/// What a study says of itself as a whole; null where it says nothing.
struct StudyFacts {
  Json teacher = nullptr;
  Json best = nullptr;
  Json target = nullptr;
  Json best_of = nullptr;  ///< how many trials were over when the best was chosen
  Json trained = nullptr;  ///< which trial was trained in full: {"trial"}
};

/// Facts that cannot be read are left out and counted in a sentence of `problems`. Without `large`
/// nothing is known of the blocks of a trial.
StudyView study_view(const std::vector<store::StoredTrial>& trials, const StudyFacts& facts,
                     const std::optional<ModelSpec>& large, std::vector<std::string>& problems);

/// Which of some networks (cost, accuracy) no other one beats: each costs less than any that is as
/// good or better. By cost; of equal ones the first.
std::vector<size_t> pareto_front(const std::vector<std::pair<double, double>>& networks);

}  // namespace adjoin::report
