#include "adjoin/spec/choice.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace adjoin {
namespace {

/// Every factor that divides both numbers.
std::vector<std::string> common_divisors(int64_t a, int64_t b) {
  std::vector<std::string> divisors;
  for (int64_t d = 1; d <= std::min(a, b); ++d) {
    if (a % d == 0 && b % d == 0) divisors.push_back(std::to_string(d));
  }
  return divisors;
}

void divide(BlockChoice& block, int64_t alpha, const std::string& name) {
  if (alpha < 1 || block.heads % alpha != 0 || block.hidden % alpha != 0) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("alpha {} does not divide the {} heads and {} hidden units of {}; legal: {}; "
                    "or a share of any size, such as --keep {:.2g}",
                    alpha, block.heads, block.hidden, name,
                    join(common_divisors(block.heads, block.hidden)),
                    1 / static_cast<double>(std::max<int64_t>(alpha, 1))));
  }
  block.heads /= alpha;
  block.hidden /= alpha;
}

/// The multiple of 8 nearest to a share of `units`, from 8 to the largest there is.
int64_t kept_units(int64_t units, double keep) {
  constexpr int64_t kStep = 8;
  if (units < kStep) return units;
  const int64_t nearest = std::llround(static_cast<double>(units) * keep / kStep) * kStep;
  return keep == 1 ? units : std::clamp(nearest, kStep, units / kStep * kStep);
}

/// Whether shortcuts differ at most in the number of blocks, as those of narrower networks do.
bool is_same_kind(const std::optional<Shortcut>& one, std::optional<Shortcut> other) {
  if (one && other) other->blocks = one->blocks;
  return one == other;
}

}  // namespace

Choice keep_everything(const ModelSpec& spec) {
  Choice choice{{}, spec.skips};
  for_each_block(spec, [&](const BlockSpec& block) {
    choice.blocks.push_back({true, block.heads, block.hidden, block.norm, block.mixer});
  });
  return choice;
}

Choice choice_from_alphas(const ModelSpec& spec, const std::vector<int64_t>& alphas) {
  Choice choice = keep_everything(spec);
  const size_t count = choice.blocks.size();
  if (alphas.size() != 1 && alphas.size() != count) {
    throw Error(ErrorKind::kUsage, fmt::format("{} alphas for the {} blocks of {}; give {} or one",
                                               alphas.size(), count, spec.name, count));
  }
  const auto placed = placed_blocks(spec);
  for (size_t i = 0; i < count; ++i) {
    divide(choice.blocks[i], alphas.size() == 1 ? alphas[0] : alphas[i], placed[i].name);
  }
  return choice;
}

Choice choice_from_keep(const ModelSpec& spec, double keep) {
  if (!(keep > 0 && keep <= 1)) {
    throw Error(ErrorKind::kUsage, fmt::format("keep is {}, must be above 0 and at most 1", keep));
  }
  Choice choice = keep_everything(spec);
  for (BlockChoice& block : choice.blocks) {
    const int64_t heads = std::llround(static_cast<double>(block.heads) * keep);
    block.heads = std::max<int64_t>(1, heads);
    block.hidden = kept_units(block.hidden, keep);
  }
  return choice;
}

Choice choice_between(const ModelSpec& large, const ModelSpec& small) {
  if (large.family.index() != small.family.index()) {
    throw Error(ErrorKind::kUsage, fmt::format("{} is a {}, {} a {}: no part of it", small.name,
                                               family_name(small), large.name, family_name(large)));
  }
  Choice choice = keep_everything(large);
  const std::vector<PlacedBlock> placed_large = placed_blocks(large);
  std::map<int64_t, int64_t> by_origin;
  int64_t index = 0;
  for_each_block(large, [&](const BlockSpec& block) { by_origin[block.origin] = index++; });
  for (BlockChoice& block : choice.blocks) block.keep = false;
  std::vector<int64_t> places;  // of the small network's blocks in the large one
  for (const PlacedBlock& placed : placed_blocks(small)) {
    const BlockSpec& wanted = *placed.block;
    const auto found = by_origin.find(wanted.origin);
    if (found == by_origin.end()) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}: {} came from block {}, which {} does not have", small.name,
                              placed.name, wanted.origin, large.name));
    }
    const BlockSpec& there = *placed_large[static_cast<size_t>(found->second)].block;
    if (there.norm != wanted.norm || there.mixer != wanted.mixer ||
        !is_same_kind(there.shortcut, wanted.shortcut)) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("{}: {} has another norm, mixer or shortcut than {} has: no part of it",
                      small.name, placed.name, large.name));
    }
    places.push_back(found->second);
    choice.blocks[static_cast<size_t>(found->second)] = {true, wanted.heads, wanted.hidden,
                                                         wanted.norm, wanted.mixer};
  }
  choice.skips.clear();
  for (const Skip& skip : small.skips) {
    choice.skips.push_back({places.at(static_cast<size_t>(skip.from)),
                            places.at(static_cast<size_t>(skip.to)), skip.kind});
  }
  return choice;
}

}  // namespace adjoin
