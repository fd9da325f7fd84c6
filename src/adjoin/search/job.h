#pragma once

// The runs a search is made of: the one that learns the mixture, the trials, and the training of
// what was found.

#include <memory>

#include "adjoin/search/config.h"
#include "adjoin/search/trials.h"
#include "adjoin/train/job.h"

namespace adjoin::search {

/// What is searched: the network that the user wants in the end, and what it may cost.
struct Question {
  Space space;
  Target target;
};

/// What a config says that a network may cost.
Target stated_target(const SearchConfig& config, const ModelSpec& large);

/// Epochs of a search, or of each of its trials.
int64_t trial_epochs(const SearchConfig& config);

/// A training as long as a search, or each of its trials, is.
train::TrainConfig shortened(const SearchConfig& config, train::TrainConfig training);

/// Every run of a search has the config of the whole, but for what may change while it goes on.
void set_search_config(train::Job& job, const SearchConfig& config);

/// Error(kUsage) when a target cannot be reached.
Question question(const SearchConfig& config);

/// The run of --method dan. What it would hand over now is written to `folder` after every epoch.
train::Job prepare_dan(const SearchConfig& config, const Question& question,
                       const train::Launch& launch, const std::string& folder);

/// A run of --method random or evolve: a network as found, for a few epochs.
train::Job prepare_trial(const SearchConfig& config, const Choice& choice,
                         const train::Launch& launch);

/// The training that follows.
train::Job prepare_training(const SearchConfig& config, const Choice& choice,
                            const train::Launch& launch);

/// architecture.json in the folder of a search.
std::string architecture_file(const std::string& folder);
void write_architecture(const std::string& folder, const ModelSpec& large, const Choice& choice);

}  // namespace adjoin::search
