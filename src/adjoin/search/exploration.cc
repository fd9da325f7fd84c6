#include "adjoin/search/exploration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "adjoin/core/error.h"
#include "adjoin/core/table.h"

namespace adjoin::search {
namespace {

// Of ESNAC: how many blocks are removed, how many skips are added.
constexpr auto kRemoved = std::to_array<double>({0.3, 0.4, 0.5, 0.6, 0.7});
constexpr auto kSkipped = std::to_array<double>({0.003, 0.005, 0.01, 0.03, 0.05});
constexpr int kMostDraws = 300;
constexpr int64_t kUnits = 8;

template <class List>
double one_of(const List& list, Rng& rng) {
  return list[static_cast<size_t>(rng.below(std::ssize(list)))];
}

/// Whether it was there.
bool remove_skip(Choice& choice, const SkipPair& pair) {
  return std::erase_if(choice.skips, [&](const Skip& skip) {
           return skip.from == pair.from && skip.to == pair.to;
         }) > 0;
}

int64_t kept(const Choice& choice) {
  return std::count_if(choice.blocks.begin(), choice.blocks.end(),
                       [](const BlockChoice& block) { return block.keep; });
}

}  // namespace

int64_t hidden_unit(int64_t hidden) { return hidden % kUnits == 0 ? kUnits : 1; }

Exploration::Exploration(ModelSpec large, Target limits, ExplorationOptions options)
    : large_(std::move(large)),
      limits_(limits),
      options_(std::move(options)),
      whole_(keep_everything(large_)),
      prices_(large_) {
  if (options_.skips.empty()) return;
  const std::vector<PlacedBlock> placed = placed_blocks(large_);
  for (size_t i = 0; i < placed.size(); ++i) {
    for (size_t j = i + 2; j < placed.size(); ++j) {  // the next one reads it anyway
      const bool is_alike =
          placed[i].embed_dim == placed[j].embed_dim && placed[i].tokens == placed[j].tokens;
      if (is_alike) pairs_.push_back({static_cast<int64_t>(i), static_cast<int64_t>(j)});
    }
  }
}

void Exploration::shrink(BlockChoice& block, size_t index, Rng& rng) const {
  const BlockChoice& whole = whole_.blocks[index];
  const auto share = [&](int64_t all) {
    return std::max<int64_t>(1, std::llround(std::ceil(rng.uniform() * static_cast<double>(all))));
  };
  block.heads = share(whole.heads);
  const int64_t unit = hidden_unit(whole.hidden);
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
    if (!rng.chance(skipped)) continue;
    remove_skip(choice, pair);
    choice.skips.push_back(skip_over(pair, rng));
  }
  set_norm(choice, rng);
  tidy(choice);
  return choice;
}

void Exploration::tidy(Choice& choice) const {
  const auto is_there = [&](int64_t block) {
    return choice.blocks[static_cast<size_t>(block)].keep;
  };
  std::erase_if(choice.skips,
                [&](const Skip& skip) { return !is_there(skip.from) || !is_there(skip.to); });
  std::sort(choice.skips.begin(), choice.skips.end(), [](const Skip& a, const Skip& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  for (size_t i = 0; i < blocks(); ++i) {
    BlockChoice& block = choice.blocks[i];
    if (block.keep) continue;
    const NormPlacement norm = block.norm;  // one for all blocks, there or not
    block = whole_.blocks[i];
    block.keep = false;
    block.norm = norm;
  }
}

Skip Exploration::skip_over(const SkipPair& pair, Rng& rng) const {
  const auto kind = options_.skips.size() == 1 ? 0 : rng.below(std::ssize(options_.skips));
  return {pair.from, pair.to, options_.skips[static_cast<size_t>(kind)]};
}

void Exploration::set_norm(Choice& choice, Rng& rng) const {
  if (options_.norms.empty()) return;
  const auto drawn = options_.norms[static_cast<size_t>(rng.below(std::ssize(options_.norms)))];
  for (BlockChoice& block : choice.blocks) block.norm = drawn;
}

std::vector<Choice> Exploration::smallest() const {
  std::vector<Choice> found;
  for (size_t block = 0; block < blocks(); ++block) {
    Choice choice = whole_;
    choice.skips.clear();
    for (size_t i = 0; i < blocks(); ++i) choice.blocks[i].keep = i == block;
    choice.blocks[block].heads = 1;
    choice.blocks[block].hidden = hidden_unit(whole_.blocks[block].hidden);
    tidy(choice);
    if (options_.norms.empty()) found.push_back(choice);
    for (const NormPlacement norm : options_.norms) {
      for (BlockChoice& one : choice.blocks) one.norm = norm;
      found.push_back(choice);
    }
  }
  return found;
}

Price Exploration::least() const {
  Price least = price(whole_);
  for (const Choice& choice : smallest()) {
    const Price one = price(choice);
    least = {std::min(least.macs, one.macs), std::min(least.params, one.params)};
  }
  return least;
}

std::optional<Choice> Exploration::cut(Choice choice, Rng& rng) const {
  for (int i = 0; i < kMostDraws; ++i) {
    if (is_affordable(choice)) return choice;
    const auto index = static_cast<size_t>(rng.below(std::ssize(choice.blocks)));
    BlockChoice& block = choice.blocks[index];
    if (!block.keep) continue;
    const int64_t unit = hidden_unit(whole_.blocks[index].hidden);
    if (kept(choice) > 1 && rng.chance(0.3)) block.keep = false;
    block.heads = std::max<int64_t>(1, block.heads / 2);
    block.hidden = std::max(unit, block.hidden / 2 / unit * unit);
    choice.skips.clear();
    tidy(choice);
  }
  for (const Choice& least : smallest()) {
    if (is_affordable(least)) return least;
  }
  return std::nullopt;
}

std::optional<Choice> Exploration::drawn(Rng& rng) const {
  for (int i = 0; i < kMostDraws; ++i) {
    Choice choice = any(rng);
    if (is_affordable(choice)) return choice;
  }
  return cut(any(rng), rng);
}

void Exploration::change(Choice& choice, Rng& rng) const {
  const auto index = static_cast<size_t>(rng.below(std::ssize(choice.blocks)));
  BlockChoice& block = choice.blocks[index];
  if (options_.norms.size() > 1 && rng.chance(0.1)) return set_norm(choice, rng);
  const int64_t what = rng.below(pairs_.empty() ? 3 : 4);
  if (what == 0) {
    if (block.keep && kept(choice) == 1) return;
    block.keep = !block.keep;
    if (block.keep) shrink(block, index, rng);
  } else if (what < 3) {
    BlockChoice other = block;
    shrink(other, index, rng);
    (what == 1 ? block.heads : block.hidden) = what == 1 ? other.heads : other.hidden;
  } else {
    const SkipPair pair = pairs_[static_cast<size_t>(rng.below(std::ssize(pairs_)))];
    if (!remove_skip(choice, pair)) choice.skips.push_back(skip_over(pair, rng));
  }
  tidy(choice);
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

std::string feasible_text(const Exploration& space) {
  const Price least = space.least();
  const Price most = space.price(space.whole());
  return fmt::format("{} with blocks removed: {} to {} MACs, {} to {} parameters",
                     space.large().name, with_commas(least.macs), with_commas(most.macs),
                     with_commas(least.params), with_commas(most.params));
}

void check_feasible(const Exploration& space) {
  const Price large = space.price(space.whole());
  const auto check_below = [&](const char* flag, const std::optional<int64_t>& limit, int64_t all) {
    if (!limit || *limit < all) return;
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: {} is not below the {} of the large network; {}", flag,
                            with_commas(*limit), with_commas(all), feasible_text(space)));
  };
  check_below("--target-macs", space.limits().macs, large.macs);
  check_below("--target-params or --target-bytes", space.limits().params, large.params);
  Rng rng(0);
  if (space.drawn(rng)) return;
  const Target& limits = space.limits();
  const Price least = space.least();
  const bool is_macs = limits.macs && *limits.macs < least.macs;
  const bool is_params = limits.params && *limits.params < least.params;
  const auto flag = [](const char* name, int64_t limit) {
    return fmt::format("{} of {}", name, with_commas(limit));
  };
  const std::string wanted =
      is_macs     ? flag("--target-macs", *limits.macs)
      : is_params ? flag("--target-params, or a fourth of --target-bytes,", *limits.params)
                  : "the targets together";
  throw Error(ErrorKind::kUsage,
              fmt::format("{}: no network can be that small; {}", wanted, feasible_text(space)));
}

}  // namespace adjoin::search
