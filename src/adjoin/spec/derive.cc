#include "adjoin/spec/derive.h"

#include <map>

namespace adjoin {
namespace {

/// Applies a choice to the blocks of one list; `next` counts over all blocks of the network.
template <class Block>
void choose_blocks(std::vector<Block>& blocks, const Choice& choice, size_t& next) {
  std::vector<Block> kept;
  for (const Block& block : blocks) {
    const BlockChoice& chosen = choice.blocks[next++];
    if (!chosen.keep) continue;
    kept.push_back(block);
    kept.back().heads = chosen.heads;
    kept.back().hidden = chosen.hidden;
    kept.back().norm = chosen.norm;
    kept.back().mixer = chosen.mixer;
  }
  blocks = std::move(kept);
}

void check_blocks(const ModelSpec& large, const Choice& choice) {
  const auto placed = placed_blocks(large);
  if (choice.blocks.size() != placed.size()) {
    throw Error(ErrorKind::kUsage, fmt::format("the choice is for {} blocks, {} has {}",
                                               choice.blocks.size(), large.name, placed.size()));
  }
  bool is_any_kept = false;
  for (size_t i = 0; i < placed.size(); ++i) {
    const BlockChoice& chosen = choice.blocks[i];
    const BlockSpec& block = *placed[i].block;
    if (!chosen.keep) continue;
    is_any_kept = true;
    const auto check = [&](const char* what, int64_t wanted, int64_t there) {
      if (wanted < 1 || wanted > there) {
        throw Error(ErrorKind::kUsage, fmt::format("{} of {}: {} are wanted, must be 1 to {}", what,
                                                   placed[i].name, wanted, there));
      }
    };
    check("heads", chosen.heads, block.heads);
    check("hidden units", chosen.hidden, block.hidden);
  }
  if (!is_any_kept) throw Error(ErrorKind::kUsage, "the choice removes every block; keep one");
}

/// The skips counted over the blocks that stay.
std::vector<Skip> chosen_skips(const Choice& choice) {
  std::vector<int64_t> places;
  int64_t next = 0;
  for (const BlockChoice& block : choice.blocks) places.push_back(block.keep ? next++ : -1);
  std::vector<Skip> skips;
  for (const Skip& skip : choice.skips) {
    for (const int64_t end : {skip.from, skip.to}) {
      const bool is_there = end >= 0 && end < static_cast<int64_t>(places.size());
      if (!is_there || places[static_cast<size_t>(end)] < 0) {
        throw Error(ErrorKind::kUsage,
                    fmt::format("skip {} -> {}: block {} {}", skip.from, skip.to, end,
                                is_there ? "is removed" : "does not exist"));
      }
    }
    skips.push_back(
        {places[static_cast<size_t>(skip.from)], places[static_cast<size_t>(skip.to)], skip.kind});
  }
  return skips;
}

/// The one factor that divides heads and hidden units of every block that stays.
int64_t common_alpha(const ModelSpec& large, const Choice& choice) {
  const auto placed = placed_blocks(large);
  int64_t alpha = 0;
  for (size_t i = 0; i < placed.size(); ++i) {
    const BlockChoice& chosen = choice.blocks[i];
    if (!chosen.keep) continue;
    const BlockSpec& block = *placed[i].block;
    const int64_t own = block.heads / chosen.heads;
    const bool is_even = own * chosen.heads == block.heads && own * chosen.hidden == block.hidden;
    if (!is_even || (alpha != 0 && own != alpha)) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("geometry narrow divides all blocks by one factor, but {} keeps {} of "
                      "{} heads and {} of {} hidden units{}; use geometry kept",
                      placed[i].name, chosen.heads, block.heads, chosen.hidden, block.hidden,
                      alpha == 0 ? "" : fmt::format(" where others are divided by {}", alpha)));
    }
    alpha = own;
  }
  return alpha;
}

void divide_width(int64_t& width, int64_t alpha) {
  if (width % alpha != 0) {
    throw Error(ErrorKind::kUsage,
                fmt::format("geometry narrow: alpha {} does not divide the width {}; use geometry "
                            "kept, or a factor of {}",
                            alpha, width, width));
  }
  width /= alpha;
}

/// A narrower matrix of circulant blocks has fewer of them, each as it is.
void divide_shortcut(BlockSpec& block, int64_t alpha) {
  if (!block.shortcut || block.shortcut->kind != ShortcutKind::kCirculant) return;
  if (block.shortcut->blocks % alpha != 0) {
    throw Error(ErrorKind::kUsage,
                fmt::format("geometry narrow: alpha {} does not divide the {} circulant blocks of "
                            "a shortcut, and a part of such a block is no slice; use geometry kept",
                            alpha, block.shortcut->blocks));
  }
  block.shortcut->blocks /= alpha;
}

/// Whether what a slice keeps is a part of what is there, axis by axis.
bool fits(const std::vector<Axis>& small, const std::vector<Axis>& large) {
  if (small.size() != large.size()) return false;
  for (size_t i = 0; i < small.size(); ++i) {
    const Axis& s = small[i];
    const Axis& l = large[i];
    if (s.kind != l.kind || s.groups != l.groups || s.unit != l.unit || s.count > l.count) {
      return false;
    }
  }
  return true;
}

std::vector<Source> sources(const ModelSpec& large, const ModelSpec& small) {
  std::map<std::string, TensorInfo> there;
  for (TensorInfo& info : tensors(large)) there.emplace(info.name, info);
  std::map<int64_t, std::string> names;  // of the large network's blocks by origin
  std::map<int64_t, Mixer> mixers;
  for (const PlacedBlock& placed : placed_blocks(large)) {
    names[placed.block->origin] = placed.name;
    mixers[placed.block->origin] = placed.block->mixer;
  }
  const auto placed = placed_blocks(small);
  const auto has_other_mixer = [&](const TensorInfo& info) {
    if (info.block < 0) return false;
    const BlockSpec& block = *placed[static_cast<size_t>(info.block)].block;
    return block.mixer != mixers.at(block.origin);
  };
  // A narrower circulant skip has circles of another size.
  const auto is_of_skip = [&](const TensorInfo& info) {
    return info.block >= 0 &&
           info.name.starts_with(placed[static_cast<size_t>(info.block)].name + ".skip");
  };
  std::vector<Source> result;
  for (TensorInfo& info : tensors(small)) {
    std::string name = info.name;
    if (info.block >= 0) {
      const PlacedBlock& home = placed[static_cast<size_t>(info.block)];
      name = names.at(home.block->origin) + name.substr(home.name.size());
    }
    const auto found = there.find(name);
    Source source{std::move(info), std::nullopt};
    if (found != there.end()) {
      const bool is_slice = fits(source.tensor.axes, found->second.axes);
      if (is_slice) source.slice = Slice{name, found->second.axes};
      if (!is_slice && !has_other_mixer(source.tensor) && !is_of_skip(source.tensor)) {
        throw Error(ErrorKind::kInternal, name + " of the small network is no slice of the large");
      }
    }
    result.push_back(std::move(source));
  }
  return result;
}

}  // namespace

Derived derive(const ModelSpec& large, const Choice& choice, Geometry geometry) {
  check_blocks(large, choice);
  const int64_t alpha = geometry == Geometry::kNarrow ? common_alpha(large, choice) : 1;
  Derived derived{large, {}};
  ModelSpec& small = derived.spec;
  size_t next = 0;
  std::visit(
      [&](auto& family) {
        if constexpr (requires { family.stages; }) {
          for (auto& stage : family.stages) {
            choose_blocks(stage.blocks, choice, next);
            divide_width(stage.embed_dim, alpha);
          }
        } else {
          choose_blocks(family.blocks, choice, next);
          divide_width(family.embed_dim, alpha);
        }
      },
      small.family);
  for_each_block(small, [&](BlockSpec& block) { divide_shortcut(block, alpha); });
  small.skips = chosen_skips(choice);
  validate(small);
  derived.sources = sources(large, small);
  return derived;
}

bool has_whole_embedding(const Derived& small) {
  for (const auto& [info, slice] : small.sources) {
    if (info.block >= 0) return true;
    if (!slice || slice->name != info.name) return false;
    for (size_t i = 0; i < info.axes.size(); ++i) {
      if (info.axes[i].size() != slice->axes[i].size()) return false;
    }
  }
  return true;
}

}  // namespace adjoin
