#pragma once

// What a search may do to a network beyond a factor per block (VTCA, Kim and Kim; the draws are
// those of ESNAC, Cao et al. 2019): remove blocks, keep fewer heads and hidden units, and add the
// output of a block to the input of a later one.

#include <optional>
#include <string>
#include <vector>

#include "adjoin/core/rng.h"
#include "adjoin/search/price_list.h"
#include "adjoin/spec/choice.h"

namespace adjoin::search {

/// Blocks whose tokens can be added: the output of the first to the input of the second.
struct SkipPair {
  int64_t from = 0;
  int64_t to = 0;
};

/// Hidden units come in eights where they all do.
int64_t hidden_unit(int64_t hidden);

/// What may be chosen besides blocks, heads and hidden units.
struct ExplorationOptions {
  std::vector<NormPlacement> norms = {};                ///< one for all blocks; empty: as they are
  std::vector<SkipKind> skips = {SkipKind::kIdentity};  ///< empty: no skips
};

class Exploration {
 public:
  Exploration(ModelSpec large, Target limits, ExplorationOptions options = {});

  const ModelSpec& large() const { return large_; }
  size_t blocks() const { return whole_.blocks.size(); }
  const std::vector<SkipPair>& pairs() const { return pairs_; }
  const Target& limits() const { return limits_; }
  const ExplorationOptions& options() const { return options_; }

  /// The choice that changes nothing.
  const Choice& whole() const { return whole_; }

  Price price(const Choice& choice) const { return prices_.of(choice); }
  bool is_affordable(const Choice& choice) const { return limits_.share(price(choice)) <= 1; }

  /// The least that a network can cost, of each measure.
  Price least() const;

  /// At random: a share of the blocks is removed, one at least stays, the others keep some heads
  /// and hidden units, a few skips are added; what none of many draws affords is cut until it is.
  /// Nothing when nothing is affordable.
  std::optional<Choice> drawn(Rng& rng) const;

  /// The same with one or two things changed, affordable; nothing when that is not found.
  std::optional<Choice> changed(const Choice& choice, Rng& rng) const;

 private:
  Choice any(Rng& rng) const;
  std::optional<Choice> cut(Choice choice, Rng& rng) const;
  /// One block of one head and the fewest hidden units: each block, with each norm.
  std::vector<Choice> smallest() const;
  /// One way to write a network: no skips to or from removed blocks, in order, and nothing said of
  /// what is removed.
  void tidy(Choice& choice) const;
  Skip skip_over(const SkipPair& pair, Rng& rng) const;
  void set_norm(Choice& choice, Rng& rng) const;
  void change(Choice& choice, Rng& rng) const;
  void shrink(BlockChoice& block, size_t index, Rng& rng) const;

  ModelSpec large_;
  Target limits_;
  ExplorationOptions options_;
  Choice whole_;
  PriceList prices_;
  std::vector<SkipPair> pairs_;
};

/// Error(kUsage), with the range, when no network is within the limits, or the large one is.
void check_feasible(const Exploration& space);

/// "vit_mini_28 with blocks removed: 107,664 to 2,427,008 MACs, 8,618 to 139,018 parameters".
std::string feasible_text(const Exploration& space);

}  // namespace adjoin::search
