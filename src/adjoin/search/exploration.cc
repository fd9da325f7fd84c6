#include "adjoin/search/exploration.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "adjoin/cost/cost.h"
#include "adjoin/spec/derive.h"

namespace adjoin::search {
namespace {

// Of ESNAC: how many blocks are removed, how many skips are added.
constexpr auto kRemoved = std::to_array<double>({0.3, 0.4, 0.5, 0.6, 0.7});
constexpr auto kSkipped = std::to_array<double>({0.003, 0.005, 0.01, 0.03, 0.05});
constexpr int kMostDraws = 1000;
constexpr int64_t kUnits = 8;  // hidden units come in eights, where there are that many

template <class List>
double one_of(const List& list, Rng& rng) {
  return list[static_cast<size_t>(rng.below(std::ssize(list)))];
}

/// Skips whose blocks are both there.
void drop_dangling(Choice& choice) {
  std::erase_if(choice.skips, [&](const Skip& skip) {
    return !choice.blocks[static_cast<size_t>(skip.from)].keep ||
           !choice.blocks[static_cast<size_t>(skip.to)].keep;
  });
}

int64_t kept(const Choice& choice) {
  return std::count_if(choice.blocks.begin(), choice.blocks.end(),
                       [](const BlockChoice& block) { return block.keep; });
}

}  // namespace

Exploration::Exploration(ModelSpec large, Target limits)
    : large_(std::move(large)), limits_(limits), whole_(keep_everything(large_)) {
  const std::vector<PlacedBlock> placed = placed_blocks(large_);
  for (size_t i = 0; i < placed.size(); ++i) {
    for (size_t j = i + 2; j < placed.size(); ++j) {  // the next one reads it anyway
      const bool is_alike =
          placed[i].embed_dim == placed[j].embed_dim && placed[i].tokens == placed[j].tokens;
      if (is_alike) pairs_.push_back({static_cast<int64_t>(i), static_cast<int64_t>(j)});
    }
  }
}

Price Exploration::price(const Choice& choice) const {
  const Cost counted = cost(derive(large_, choice, Geometry::kKept).spec);
  return {counted.macs.total(), counted.params};
}

void Exploration::shrink(BlockChoice& block, size_t index, Rng& rng) const {
  const BlockChoice& whole = whole_.blocks[index];
  const auto share = [&](int64_t all) {
    return std::max<int64_t>(1, std::llround(std::ceil(rng.uniform() * static_cast<double>(all))));
  };
  block.heads = share(whole.heads);
  const int64_t unit = whole.hidden % kUnits == 0 ? kUnits : 1;
  block.hidden = unit * share(whole.hidden / unit);
}

Choice Exploration::any(Rng& rng) const {
  Choice choice = whole_;
  const double removed = one_of(kRemoved, rng);
  const double skipped = one_of(kSkipped, rng);
  for (size_t i = 0; i < blocks(); ++i) {
    choice.blocks[i].keep = !rng.chance(removed);
    shrink(choice.blocks[i], i, rng);
  }
  if (kept(choice) == 0)
    choice.blocks[static_cast<size_t>(rng.below(std::ssize(choice.blocks)))].keep = true;
  for (const SkipPair& pair : pairs_) {
    if (rng.chance(skipped)) choice.skips.push_back({pair.from, pair.to});
  }
  drop_dangling(choice);
  return choice;
}

std::optional<Choice> Exploration::drawn(Rng& rng) const {
  for (int i = 0; i < kMostDraws; ++i) {
    Choice choice = any(rng);
    if (is_affordable(choice)) return choice;
  }
  return std::nullopt;
}

void Exploration::change(Choice& choice, Rng& rng) const {
  const auto index = static_cast<size_t>(rng.below(std::ssize(choice.blocks)));
  BlockChoice& block = choice.blocks[index];
  const int64_t what = rng.below(pairs_.empty() ? 3 : 4);
  if (what == 0) {
    if (block.keep && kept(choice) == 1) return;
    block.keep = !block.keep;
  } else if (what < 3) {
    BlockChoice other = block;
    shrink(other, index, rng);
    (what == 1 ? block.heads : block.hidden) = what == 1 ? other.heads : other.hidden;
  } else {
    const SkipPair pair = pairs_[static_cast<size_t>(rng.below(std::ssize(pairs_)))];
    const auto removed = std::erase_if(choice.skips, [&](const Skip& skip) {
      return skip.from == pair.from && skip.to == pair.to;
    });
    if (removed == 0) choice.skips.push_back({pair.from, pair.to});
  }
  drop_dangling(choice);
}

std::optional<Choice> Exploration::changed(const Choice& choice, Rng& rng) const {
  for (int i = 0; i < kMostDraws; ++i) {
    Choice other = choice;
    const int64_t count = 1 + rng.below(2);
    for (int64_t k = 0; k < count; ++k) change(other, rng);
    if (other != choice && is_affordable(other)) return other;
  }
  return std::nullopt;
}

}  // namespace adjoin::search
