#pragma once

// Who proposes the next networks of a search. All are functions of the seed and of what was tried.

#include <string_view>
#include <vector>

#include "adjoin/search/embedding.h"

namespace adjoin::search {

/// A network that was tried, and what it came to.
struct Outcome {
  Choice choice;
  double reward = 0;
};

struct ProposerOptions {
  int64_t candidates = 1000;  ///< networks of which each kernel names the most promising
  double mutated = 0.5;       ///< share of them that are changes of the best so far
  EmbeddingOptions embedding;
};

/// `count` networks that were not tried and differ from each other. Fewer where the limits leave no
/// more to be found.
std::vector<Choice> propose_at_random(const Exploration& space, const std::vector<Outcome>& tried,
                                      int64_t count, uint64_t seed);

/// By expected improvement over a Gaussian process on points made by hand.
std::vector<Choice> propose_by_features(const Exploration& space, const std::vector<Outcome>& tried,
                                        int64_t count, uint64_t seed,
                                        const ProposerOptions& options);

/// The same on learned points (ESNAC, VTCA): one embedding per proposal, each fitted on a random
/// half of what was tried.
std::vector<Choice> propose_by_embedding(const Exploration& space,
                                         const std::vector<Outcome>& tried, int64_t count,
                                         uint64_t seed, const ProposerOptions& options);

}  // namespace adjoin::search
