#pragma once

// What a study on disk says, in the words of a search: networks that were tried, are being tried or
// wait, and the next ones to propose.

#include "adjoin/search/config.h"
#include "adjoin/search/exploration.h"
#include "adjoin/search/proposers.h"
#include "adjoin/store/study.h"

namespace adjoin::search {

/// Everything that must be the same when a study goes on, `teacher` being the hash of the large
/// network's weights. Looks at the images.
Json study_about(const SearchConfig& config, const Exploration& space, const std::string& teacher);

/// The settings of a study that an older version did not know, as they had no effect then.
Json usual_settings();

/// A network as the study keeps it: its architecture, costs and seed as facts, what was chosen as
/// parameters.
store::Proposal proposal_of(const Exploration& space, const Choice& choice, Proposer proposer,
                            int64_t seed);

/// Facts of a trial or of its study that are numbers: 0, or none, where nothing is known.
/// Error(kData) naming `owner` when they are something else.
double number_of(const Json& facts, const std::string& name, const std::string& owner);
std::vector<double> numbers_of(const Json& facts, const std::string& name,
                               const std::string& owner);
std::string name_of(const store::StoredTrial& trial);

/// Error(kData) when the architecture is damaged.
Choice choice_of(const Exploration& space, const store::StoredTrial& trial);

/// Error(kData) naming the file, and what in it is not what a search writes.
void check_facts(const Exploration& space, const store::Study& study, const std::string& path);

/// Trials that are over, and all others. One that failed counts as the worst of those that did not.
History history_of(const Exploration& space, const std::vector<store::StoredTrial>& trials);

/// Those that were trained to the end, the best first; the earliest of equals.
std::vector<store::StoredTrial> ranking(const std::vector<store::StoredTrial>& trials);

double sum_of(const std::vector<store::StoredTrial>& trials, const char* fact);

/// What other trials came to after `done` epochs, but for those that failed.
std::vector<double> rewards_after(int64_t done, int64_t without,
                                  const std::vector<store::StoredTrial>& trials);

/// Gives every trial that is over its place in two dimensions, the fact "point": the two main
/// directions of points that are learned from them, of many from some. Nothing where all have one.
void draw_map(const Exploration& space, store::Study& study, uint64_t seed);

}  // namespace adjoin::search
