#pragma once

// Choices as unlike each other as a network allows, for both geometries.

#include "adjoin/spec/derive.h"
#include "support/random_spec.h"

namespace adjoin {

/// A random network of `family` (0 ViT, 1 T2T, 2 Swin) whose heads, hidden units and widths are all
/// multiples of `factor`, and so are circulant blocks; without circulant skips, which a narrower
/// network has of its own, unless the factor is 1.
inline ModelSpec random_divisible_spec(uint64_t seed, uint64_t family, int64_t factor) {
  ModelSpec spec = random_spec(3 * seed + family);
  for_each_block(spec, [&](BlockSpec& block) {
    block.heads *= factor;
    block.hidden *= factor;
    const bool is_circulant = block.shortcut && block.shortcut->kind == ShortcutKind::kCirculant;
    if (is_circulant) block.shortcut->blocks *= factor;
  });
  std::visit(
      [&](auto& alternative) {
        if constexpr (requires { alternative.stages; }) {
          for (auto& stage : alternative.stages) stage.embed_dim *= factor;
        } else {
          alternative.embed_dim *= factor;
        }
      },
      spec.family);
  for (Skip& skip : spec.skips) {
    if (factor > 1) skip.kind = SkipKind::kIdentity;
  }
  return spec;
}

/// Drops skips that end in a removed block.
inline void drop_dangling_skips(Choice& choice) {
  std::erase_if(choice.skips, [&](const Skip& skip) {
    return !choice.blocks[static_cast<size_t>(skip.from)].keep ||
           !choice.blocks[static_cast<size_t>(skip.to)].keep;
  });
}

/// Removes some blocks, never all, and the skips that end in them.
inline void remove_some_blocks(Dice& dice, Choice& choice) {
  const auto count = static_cast<int64_t>(choice.blocks.size());
  const int64_t sure = dice.between(0, count - 1);
  for (int64_t i = 0; i < count; ++i) {
    if (i != sure && dice.between(0, 3) == 0) choice.blocks[static_cast<size_t>(i)].keep = false;
  }
  drop_dangling_skips(choice);
}

inline Choice random_choice(const ModelSpec& spec, Geometry geometry, int64_t factor,
                            uint64_t seed) {
  Dice dice(seed);
  Choice choice =
      geometry == Geometry::kNarrow ? choice_from_alphas(spec, {factor}) : keep_everything(spec);
  if (geometry == Geometry::kKept) {
    for (BlockChoice& block : choice.blocks) {
      block.heads = dice.between(1, block.heads);
      block.hidden = dice.between(1, block.hidden);
    }
  }
  remove_some_blocks(dice, choice);
  return choice;
}

}  // namespace adjoin
