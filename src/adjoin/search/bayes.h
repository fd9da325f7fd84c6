#pragma once

// What a user can say about --method bayes: the space, who proposes, and what a network is worth.

#include <string>
#include <vector>

#include "adjoin/core/fields.h"
#include "adjoin/search/proposers.h"
#include "adjoin/search/reward.h"

namespace adjoin::search {

enum class RewardCost { kAuto, kMacs, kParams, kLatency };
enum class RewardBy { kAccuracy, kTse, kTseE, kTseEma };
enum class FinalTraining { kDistillation, kAdjoined };

}  // namespace adjoin::search

namespace adjoin {

template <>
inline constexpr auto kEnumNames<search::RewardCost> =
    std::to_array<EnumName<search::RewardCost>>({{"auto", search::RewardCost::kAuto},
                                                 {"macs", search::RewardCost::kMacs},
                                                 {"params", search::RewardCost::kParams},
                                                 {"latency", search::RewardCost::kLatency}});

template <>
inline constexpr auto kEnumNames<search::RewardBy> =
    std::to_array<EnumName<search::RewardBy>>({{"accuracy", search::RewardBy::kAccuracy},
                                               {"tse", search::RewardBy::kTse},
                                               {"tse-e", search::RewardBy::kTseE},
                                               {"tse-ema", search::RewardBy::kTseEma}});

template <>
inline constexpr auto kEnumNames<search::FinalTraining> =
    std::to_array<EnumName<search::FinalTraining>>(
        {{"distillation", search::FinalTraining::kDistillation},
         {"adjoined", search::FinalTraining::kAdjoined}});

}  // namespace adjoin

namespace adjoin::search {

/// Fields that may differ when a study goes on: how long, by how many processes, and what is done
/// with what it finds.
inline constexpr auto kMayChange = std::to_array<const char*>(
    {"trials", "budget_minutes", "jobs", "finalists", "final_training", "retrain"});

struct BayesOptions {
  Proposer proposer = Proposer::kEmbedding;
  int64_t proposals = 8;
  std::vector<std::string> norms;
  std::vector<std::string> skips = {"identity"};
  RewardBy reward_by = RewardBy::kAccuracy;
  RewardCost reward_cost = RewardCost::kAuto;
  ElasticReward reward;
  int64_t tse_epochs = 1;
  double tse_weight = 0.9;
  int64_t halving = 3;
  int64_t finalists = 1;
  FinalTraining final_training = FinalTraining::kDistillation;
  int64_t jobs = 1;
};

template <class Visitor>
void fields(Visitor& visit, BayesOptions& options) {
  visit("proposer", options.proposer, {},
        "bayes: embedding (a Gaussian process on learned points), features (on points made by "
        "hand) or random");
  visit("proposals", options.proposals, Range{1, 1000}, "bayes: networks proposed at a time");
  visit("norms", options.norms, {},
        "bayes: where norms may stand, one for all blocks: pre, post, res-post, res-post-v2 "
        "(default: as they are)");
  visit("skips", options.skips, {},
        "bayes: kinds of skips between blocks: identity, circulant; none: no skips");
  visit("reward_by", options.reward_by, {},
        "bayes: A of the reward: accuracy, or how fast training goes: tse, tse-e (last epochs), "
        "tse-ema");
  visit("reward_cost", options.reward_cost, {},
        "bayes: C of the reward: macs, params, latency (CPU, one image); auto: what has a target");
  visit("reward_a", options.reward.a, Range{1e-3, 1e3},
        "bayes: reward (1 - (1 - C)^a) A^b; C counts up to the target");
  visit("reward_b", options.reward.b, Range{1e-3, 1e3}, "bayes: the same");
  visit("tse_epochs", options.tse_epochs, Range{1, 1e6}, "bayes: last epochs of tse-e");
  visit("tse_weight", options.tse_weight, Range{1e-3, 1}, "bayes: of the newest loss, tse-ema");
  visit("halving", options.halving, Range{0, 100},
        "bayes: of so many trials one goes on past epochs/N, epochs/N^2, ..; 0: all do");
  visit("finalists", options.finalists, Range{1, 100},
        "bayes: so many of the best are trained in full, and judged by the images set aside");
  visit("final_training", options.final_training, {},
        "bayes: of what was found: distillation from the large network, or adjoined with it");
  visit("jobs", options.jobs, Range{1, 1024}, "bayes: trials at the same time, a process each");
}

}  // namespace adjoin::search
