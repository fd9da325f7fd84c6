#pragma once

// What a search may do to a network beyond a factor per block (VTCA, Kim and Kim; the draws are
// those of ESNAC, Cao et al. 2019): remove blocks, keep fewer heads and hidden units, and add the
// output of a block to the input of a later one.

#include <optional>
#include <vector>

#include "adjoin/core/rng.h"
#include "adjoin/search/target.h"
#include "adjoin/spec/choice.h"

namespace adjoin::search {

/// Blocks whose tokens can be added: the output of the first to the input of the second.
struct SkipPair {
  int64_t from = 0;
  int64_t to = 0;
};

class Exploration {
 public:
  Exploration(ModelSpec large, Target limits);

  const ModelSpec& large() const { return large_; }
  size_t blocks() const { return whole_.blocks.size(); }
  const std::vector<SkipPair>& pairs() const { return pairs_; }

  /// The choice that changes nothing.
  const Choice& whole() const { return whole_; }

  Price price(const Choice& choice) const;
  bool is_affordable(const Choice& choice) const { return limits_.share(price(choice)) <= 1; }

  /// At random: a share of the blocks is removed, one at least stays, the others keep some heads
  /// and hidden units, a few skips are added. Nothing when none of many draws is affordable.
  std::optional<Choice> drawn(Rng& rng) const;

  /// The same with one or two things changed, affordable; nothing when that is not found.
  std::optional<Choice> changed(const Choice& choice, Rng& rng) const;

 private:
  Choice any(Rng& rng) const;
  void change(Choice& choice, Rng& rng) const;
  void shrink(BlockChoice& block, size_t index, Rng& rng) const;

  ModelSpec large_;
  Target limits_;
  Choice whole_;
  std::vector<SkipPair> pairs_;
};

}  // namespace adjoin::search
