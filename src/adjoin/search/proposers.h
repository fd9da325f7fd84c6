#pragma once

// Who proposes the next networks of a search. All are functions of the seed and of what was tried.

#include <functional>
#include <vector>

#include "adjoin/core/fields.h"
#include "adjoin/search/embedding.h"

namespace adjoin::search {

/// A network that was tried, and what it came to.
struct Outcome {
  Choice choice;
  double reward = 0;
};

/// What a search knows: what was tried, and what is being tried or could not be judged, which is
/// not proposed again.
struct History {
  std::vector<Outcome> tried;
  std::vector<Choice> pending = {};

  uint64_t size() const { return tried.size() + pending.size(); }
};

enum class Proposer {
  kEmbedding,  ///< expected improvement on learned points (ESNAC, VTCA): one embedding per
               ///< proposal, each fitted on a random half of what was tried
  kFeatures,   ///< the same on points made by hand
  kRandom,
};

struct ProposerOptions {
  int64_t candidates = 1000;  ///< networks of which each kernel names the most promising
  double mutated = 0.5;       ///< share of them that are changes of the best so far
  EmbeddingOptions embedding;
  std::function<void()> between = [] {};  ///< called now and then; may throw
};

/// `way`, or kRandom while too little is known to learn from.
Proposer way_now(Proposer way, const History& known);

/// `count` networks that are not known and differ from each other; fewer where the limits leave no
/// more to be found.
std::vector<Choice> propose(Proposer way, const Exploration& space, const History& known,
                            int64_t count, uint64_t seed, const ProposerOptions& options = {});

}  // namespace adjoin::search

namespace adjoin {

template <>
inline constexpr auto kEnumNames<search::Proposer> =
    std::to_array<EnumName<search::Proposer>>({{"embedding", search::Proposer::kEmbedding},
                                               {"features", search::Proposer::kFeatures},
                                               {"random", search::Proposer::kRandom}});

}  // namespace adjoin
