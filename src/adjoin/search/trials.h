#pragma once

// Searches that propose networks and look at how they do: random ones, or changes of good ones.

#include <vector>

#include "adjoin/search/fit.h"

namespace adjoin::search {

/// A network that was tried.
struct Trial {
  Fitted fitted;
  double worth = 0;  ///< top1 on the images that were set aside, or what a proxy says
};

/// The next network to try, all within the target. A function of the seed and of what was tried.
Fitted random_proposal(const Space& space, const Target& target, uint64_t seed,
                       const std::vector<Trial>& tried);

/// Regularised evolution (Real et al. 2019): of the last few trials some are drawn, and the best of
/// these is changed in one or two blocks. The first few are random.
Fitted evolved_proposal(const Space& space, const Target& target, uint64_t seed,
                        const std::vector<Trial>& tried);

/// So many trials are drawn at random before the first is evolved.
inline constexpr int64_t kPopulation = 8;

/// The best; the earliest of equals.
const Trial& best(const std::vector<Trial>& tried);

}  // namespace adjoin::search
