#pragma once

// Small, valid networks that are as unlike each other as a spec allows: what holds for a few
// hundred of them holds for compressed networks too. The same seed gives the same spec on every
// machine.

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "adjoin/spec/model_spec.h"

namespace adjoin {

class Dice {
 public:
  explicit Dice(uint64_t seed) : rng_(seed) {}

  /// A whole number from `low` to `high`, both included.
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(rng_() % static_cast<uint64_t>(high - low + 1));
  }
  bool coin() { return between(0, 1) == 1; }

 private:
  std::mt19937_64 rng_;
};

inline BlockSpec random_block(Dice& dice, int64_t& next_origin) {
  BlockSpec block;
  block.origin = next_origin + dice.between(0, 2);  // blocks before it may have been removed
  next_origin = block.origin + 1;
  block.heads = dice.between(1, 4);
  block.head_dim = dice.between(1, 7);
  block.hidden = dice.between(1, 40);
  block.drop_path = static_cast<double>(dice.between(0, 5)) / 10;
  return block;
}

inline BlockSpec random_trunk_block(Dice& dice, int64_t& next_origin) {
  BlockSpec block = random_block(dice, next_origin);
  if (dice.coin()) block.mixer = {MixerKind::kRelative, dice.between(1, 6)};
  return block;
}

inline void random_vit(Dice& dice, ModelSpec& spec) {
  VitSpec vit;
  vit.patch_size = dice.between(2, 6);
  spec.img_size = vit.patch_size * dice.between((7 + vit.patch_size) / vit.patch_size, 5);
  vit.embed_dim = dice.between(4, 24);
  vit.pool = dice.coin() ? PoolKind::kToken : PoolKind::kAvg;
  vit.distilled = dice.coin();
  vit.pos_embed = dice.coin() ? PosEmbed::kLearned : PosEmbed::kSinusoid;
  const int64_t depth = dice.between(1, 4);
  int64_t origin = 0;
  for (int64_t i = 0; i < depth; ++i) vit.blocks.push_back(random_trunk_block(dice, origin));
  spec.family = std::move(vit);
}

inline void random_t2t(Dice& dice, ModelSpec& spec) {
  T2tSpec t2t;
  t2t.tokens.kind = dice.coin() ? TokensKind::kPerformer : TokensKind::kTransformer;
  t2t.tokens.dim = dice.between(2, 12);
  spec.img_size = dice.between(8, 32);
  int64_t grid = spec.img_size;
  const int64_t count = dice.between(1, 3);
  for (int64_t i = 0; i < count; ++i) {
    Split split;
    split.padding = dice.between(0, 2);
    split.kernel = dice.between(1, std::min<int64_t>(7, grid + 2 * split.padding));
    split.stride = i == 0 ? dice.between(2, 4) : dice.between(1, 3);
    grid = (grid + 2 * split.padding - split.kernel) / split.stride + 1;
    t2t.tokens.splits.push_back(split);
  }
  t2t.embed_dim = dice.between(4, 24);
  t2t.pool = dice.coin() ? PoolKind::kToken : PoolKind::kAvg;
  t2t.pos_embed = dice.coin() ? PosEmbed::kLearned : PosEmbed::kSinusoid;
  const int64_t depth = dice.between(1, 4);
  int64_t origin = 0;
  for (int64_t i = 0; i < depth; ++i) t2t.blocks.push_back(random_trunk_block(dice, origin));
  spec.family = std::move(t2t);
}

inline void random_swin(Dice& dice, ModelSpec& spec) {
  SwinSpec swin;
  const int64_t stages = dice.between(1, 3);
  const int64_t last_grid = dice.between(1, 12 >> (stages - 1));
  const int64_t first_grid = last_grid << (stages - 1);
  swin.patch_size = dice.between(first_grid < 8 ? 2 : 1, 2);
  spec.img_size = first_grid * swin.patch_size;
  const auto fits = [&](int64_t window) {
    for (int64_t s = 0; s < stages; ++s) {
      const int64_t grid = first_grid >> s;
      if (grid > window && grid % window != 0) return false;
    }
    return true;
  };
  do {
    swin.window = dice.coin() ? dice.between(2, std::max<int64_t>(2, first_grid / 2))
                              : dice.between(1, first_grid + 2);
  } while (!fits(swin.window));
  int64_t origin = 0;
  const int64_t sure_stage = dice.between(0, stages - 1);  // has a block whatever the dice say
  for (int64_t s = 0; s < stages; ++s) {
    const int64_t grid = first_grid >> s;
    SwinStage stage;
    stage.embed_dim = dice.between(4, 24);
    const int64_t depth = dice.between(s == sure_stage ? 1 : 0, stages == 1 ? 4 : 2);
    for (int64_t b = 0; b < depth; ++b) {
      SwinBlockSpec block{random_block(dice, origin)};
      block.shift = grid <= swin.window ? 0 : dice.between(0, swin.window - 1);
      stage.blocks.push_back(block);
    }
    swin.stages.push_back(std::move(stage));
  }
  spec.family = std::move(swin);
}

inline void random_skips(Dice& dice, ModelSpec& spec) {
  const std::vector<PlacedBlock> blocks = placed_blocks(spec);
  for (size_t from = 0; from < blocks.size(); ++from) {
    for (size_t to = from + 1; to < blocks.size(); ++to) {
      const bool fits = blocks[from].embed_dim == blocks[to].embed_dim &&
                        blocks[from].tokens == blocks[to].tokens;
      if (!fits || dice.between(0, 3) > 0) continue;
      spec.skips.push_back({static_cast<int64_t>(from), static_cast<int64_t>(to)});
    }
  }
}

/// A mixer for so many tokens; `is_ordered` where one may look at what came before it alone.
inline Mixer random_mixer(Dice& dice, MixerKind kind, int64_t tokens, bool is_ordered) {
  Mixer mixer = default_mixer(kind, tokens);
  switch (kind) {
    case MixerKind::kRelative: mixer.distance = dice.between(1, 6); return mixer;
    case MixerKind::kLinformer:
      mixer.k = dice.between(1, tokens);
      mixer.share = static_cast<ProjectionShare>(dice.between(0, 2));
      return mixer;
    case MixerKind::kSparseStrided:
    case MixerKind::kSparseFixed:
      mixer.stride = dice.between(1, std::min<int64_t>(tokens, 9));
      mixer.part = static_cast<SparsePart>(dice.between(0, 2));
      if (kind == MixerKind::kSparseStrided)
        mixer.band = dice.between(0, std::min<int64_t>(tokens, 20));
      if (kind == MixerKind::kSparseFixed) mixer.columns = dice.between(1, mixer.stride);
      break;
    case MixerKind::kLsh:
      mixer.chunk = dice.between(1, tokens);
      mixer.rounds = dice.between(1, 3);
      break;
    case MixerKind::kSoftmax: return mixer;
    case MixerKind::kLinear:
    case MixerKind::kRecurrent: break;
  }
  mixer.is_causal = is_ordered && dice.coin();
  const bool is_blind = kind == MixerKind::kSparseFixed && mixer.part == SparsePart::kFar;
  if (is_blind) mixer.is_causal = false;
  return mixer;
}

inline Shortcut random_shortcut(Dice& dice, int64_t embed_dim) {
  Shortcut shortcut;
  shortcut.branches = dice.between(0, 3);
  do shortcut.blocks = dice.between(1, 6);
  while (embed_dim % shortcut.blocks != 0);
  shortcut.has_gelu = dice.coin();
  shortcut.scale = dice.coin() ? 1 : 0.75;
  if (dice.coin()) {
    shortcut.kind = ShortcutKind::kDense;
    shortcut.blocks = Shortcut{}.blocks;
  }
  return shortcut;
}

/// Norms, mixers and shortcuts for the blocks of a network that is otherwise whole.
inline void random_block_parts(Dice& dice, ModelSpec& spec) {
  const bool is_ordered = std::visit(
      [](const auto& family) {
        if constexpr (requires { family.pool; }) return family.pool == PoolKind::kAvg;
        return false;
      },
      spec.family);
  const ModelSpec whole = spec;
  const std::vector<PlacedBlock> placed = placed_blocks(whole);
  size_t index = 0;
  for_each_block(spec, [&](BlockSpec& block) {
    const PlacedBlock& here = placed[index++];
    if (dice.coin()) block.norm = static_cast<NormPlacement>(dice.between(0, 3));
    if (dice.between(0, 2) == 0) block.shortcut = random_shortcut(dice, here.embed_dim);
    if (dice.coin()) return;
    if (!here.window) {
      const auto kind = static_cast<MixerKind>(dice.between(0, 7));
      block.mixer = random_mixer(dice, kind, here.tokens, is_ordered);
    } else if (here.window->shift == 0) {
      constexpr MixerKind kKinds[] = {MixerKind::kLinformer, MixerKind::kLinear,
                                      MixerKind::kRecurrent};
      block.mixer = random_mixer(dice, kKinds[dice.between(0, 2)], here.window->tokens(), false);
    }
  });
}

/// A spec that `validate` accepts, of blocks as ViT, AutoFormer and Swin have them; seeds in a row
/// take the families in turn.
inline ModelSpec random_plain_spec(uint64_t seed) {
  Dice dice(seed);
  ModelSpec spec;
  spec.in_chans = dice.between(1, 4);
  spec.num_classes = dice.between(2, 7);
  spec.qkv_bias = dice.coin();
  spec.norm_eps = dice.coin() ? 1e-6 : 1e-5;
  switch (seed % 3) {
    case 0: random_vit(dice, spec); break;
    case 1: random_t2t(dice, spec); break;
    default: random_swin(dice, spec);
  }
  spec.name = "random_" + std::string(family_name(spec)) + "_" + std::to_string(seed);
  random_skips(dice, spec);
  return spec;
}

/// The same with blocks of every kind.
inline ModelSpec random_spec(uint64_t seed) {
  ModelSpec spec = random_plain_spec(seed);
  Dice dice(seed + 1);
  random_block_parts(dice, spec);
  for (Skip& skip : spec.skips) {
    skip.kind = dice.coin() ? SkipKind::kIdentity : SkipKind::kCirculant;
  }
  return spec;
}

}  // namespace adjoin
