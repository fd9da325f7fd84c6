#pragma once

// What a search may choose, one compression factor per block from a list, and what every choice
// costs.

#include <string>
#include <vector>

#include "adjoin/search/target.h"
#include "adjoin/spec/choice.h"

namespace adjoin::search {

class Space {
 public:
  /// In geometry `kept`. A candidate that does not divide heads and hidden units of a block is left
  /// out there, and a note says so; no candidates: the divisors of the smallest number of heads, up
  /// to 8. Error(kUsage) for one that is below 1 or given twice.
  Space(ModelSpec large, std::vector<int64_t> candidates);

  const ModelSpec& large() const { return large_; }
  size_t blocks() const { return alphas_.size(); }
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<std::string>& notes() const { return notes_; }

  /// Of each block, rising; never empty.
  const std::vector<std::vector<int64_t>>& alphas() const { return alphas_; }

  /// Of a block with a candidate, by number; of one hidden unit of a block; of all outside blocks.
  const Price& price(size_t block, size_t candidate) const { return prices_[block][candidate]; }
  const Price& unit_price(size_t block) const { return unit_prices_[block]; }
  const Price& rest() const { return rest_; }

  Price price(const Choice& choice) const;
  Price least() const;
  Price most() const;

  /// One candidate per block, by number.
  Choice choice(const std::vector<size_t>& picks) const;
  std::vector<int64_t> alphas_of(const std::vector<size_t>& picks) const;

 private:
  ModelSpec large_;
  std::vector<std::string> names_;
  std::vector<std::string> notes_;
  std::vector<std::vector<int64_t>> alphas_;
  std::vector<std::vector<Price>> prices_;
  std::vector<Price> unit_prices_;
  Price rest_;
};

/// Error(kUsage), with the range, for a target that no choice reaches.
void check_feasible(const Space& space, const Target& target);

/// "vit_mini_32 with 1, 2, 4, 8: 60.1 M to 272 M MACs, 1.2 M to 4.2 M parameters".
std::string feasible_text(const Space& space);

}  // namespace adjoin::search
