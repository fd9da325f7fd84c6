#pragma once

// A choice brought to what the user can afford.

#include <optional>
#include <string>
#include <vector>

#include "adjoin/search/space.h"

namespace adjoin::search {

/// A number for each block and candidate.
using Scores = std::vector<std::vector<double>>;

/// The hidden units of one block before and after they were cut to the target, or added up to it.
struct Trim {
  std::string block;
  int64_t from = 0;
  int64_t to = 0;
};

/// A choice that fits a target.
struct Fitted {
  std::vector<int64_t> alphas;
  Choice choice;
  std::vector<Trim> trims;
  Price price;
};

/// What a choice came from: the factors its heads were divided by, and the units that were cut.
Fitted fitted_as(const Space& space, const Choice& choice);

/// The candidates with the largest sum of scores that cost the target, or at most a tenth more,
/// which is then cut from the MLPs in steps of 8 units, those of the block with the lowest
/// `importance` first. Where nothing can be cut that far, units are added to the best choice below
/// the target. Without a target: the largest score of every block.
Fitted fit(const Space& space, const Scores& scores, const std::vector<double>& importance,
           const Target& target);

/// All blocks alike: the largest factor that costs at least the target, cut evenly. Nothing where
/// no factor is legal in every block, or the target cannot be reached so.
std::optional<Fitted> fit_evenly(const Space& space, const Target& target);

}  // namespace adjoin::search
