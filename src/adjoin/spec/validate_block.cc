// Whether a block can stand where it does.
#include "adjoin/spec/validate_block.h"

#include <algorithm>

namespace adjoin {
namespace {

[[noreturn]] void refuse(const PlacedBlock& placed, const std::string& what) {
  throw Error(ErrorKind::kConfig, fmt::format("model.{}.{}", placed.name, what));
}

/// Windows have few tokens, in no order, and those of shifted ones must not all see each other.
void check_window(const PlacedBlock& placed, const Mixer& mixer) {
  if (!placed.window || mixer.kind == MixerKind::kSoftmax) return;
  const auto kind = enum_name(mixer.kind);
  if (mixer.kind != MixerKind::kLinformer && !mixer.is_linear()) {
    refuse(placed, fmt::format("mixer.kind: is {}; windows have softmax, linformer, linear or "
                               "recurrent",
                               kind));
  }
  if (placed.window->shift > 0) {
    refuse(placed, fmt::format("mixer.kind: is {}, but windows shifted by {} hold tokens that must "
                               "not see each other: they have softmax",
                               kind, placed.window->shift));
  }
  if (mixer.is_causal)
    refuse(placed, "mixer.causal: is true, but the tokens of a window have no order");
}

void check_mixer(const PlacedBlock& placed, const Mixer& mixer) {
  check_window(placed, mixer);
  const int64_t tokens = placed.window ? placed.window->tokens() : placed.tokens;
  const auto at_most = [&](const char* field, int64_t value, int64_t most, const char* of) {
    if (value > most) {
      refuse(placed,
             fmt::format("mixer.{}: is {}, must be at most {}, {}", field, value, most, of));
    }
  };
  constexpr const char* kTokens = "the number of tokens";
  if (mixer.kind == MixerKind::kLinformer) at_most("k", mixer.k, tokens, kTokens);
  if (mixer.kind == MixerKind::kLsh) at_most("chunk", mixer.chunk, tokens, kTokens);
  if (mixer.is_sparse()) at_most("stride", mixer.stride, tokens, kTokens);
  if (mixer.kind == MixerKind::kSparseStrided) at_most("band", mixer.band, tokens, kTokens);
  if (mixer.kind == MixerKind::kSparseFixed) {
    at_most("columns", mixer.columns, mixer.stride, "the stride");
    if (mixer.part == SparsePart::kFar && mixer.is_causal) {
      refuse(placed, "mixer.part: is far and causal: the first tokens would see nothing");
    }
  }
}

void check_shortcut(const PlacedBlock& placed, const Shortcut& shortcut) {
  if (shortcut.kind != ShortcutKind::kCirculant || placed.embed_dim % shortcut.blocks == 0) return;
  std::vector<std::string> legal;
  for (int64_t i = 1; i <= placed.embed_dim && legal.size() < 16; ++i) {
    if (placed.embed_dim % i == 0) legal.push_back(std::to_string(i));
  }
  refuse(placed, fmt::format("shortcut.blocks: {} does not divide embed_dim {}; legal: {}",
                             shortcut.blocks, placed.embed_dim, join(legal)));
}

/// Entries of all scores of a block, at most.
double pairs(const PlacedBlock& placed, const Mixer& mixer) {
  const auto tokens = static_cast<double>(placed.tokens);
  const double all = static_cast<double>(placed.block->heads) * tokens * tokens;
  const auto chunk = static_cast<double>(mixer.chunk);
  if (mixer.kind == MixerKind::kLsh) {
    return all / tokens * static_cast<double>(mixer.rounds) * 2 * chunk * (1 + 2 * chunk / tokens);
  }
  return mixer.is_sparse() ? 12 * all : 2 * all;
}

/// Counts of all blocks must fit 64 bits.
void check_size(const PlacedBlock& placed) {
  constexpr double kMostPairs = 5e14;
  constexpr double kMostMacs = 8e15;
  const BlockSpec& block = *placed.block;
  const auto width = static_cast<double>(placed.embed_dim);
  const double entries = pairs(placed, block.mixer);
  const double scores = 2 * entries * static_cast<double>(block.head_dim);
  const double more = block.shortcut ? static_cast<double>(block.shortcut->branches) : 0;
  const double linear = width * (4 * static_cast<double>(block.attention_dim()) +
                                 2 * static_cast<double>(block.hidden) + 8 * more * width);
  if (entries > kMostPairs || scores + static_cast<double>(placed.tokens) * linear > kMostMacs) {
    throw Error(ErrorKind::kConfig,
                fmt::format("model.{}: takes more products than can be counted", placed.name));
  }
}

}  // namespace

void validate_block(const PlacedBlock& placed) {
  const BlockSpec& block = *placed.block;
  if (block.attention_dim() > kMostAttentionDim) {
    throw Error(ErrorKind::kConfig,
                fmt::format("model.{}: heads {} x head_dim {} is more than {}", placed.name,
                            block.heads, block.head_dim, kMostAttentionDim));
  }
  check_mixer(placed, block.mixer);
  if (block.shortcut) check_shortcut(placed, *block.shortcut);
  check_size(placed);
}

}  // namespace adjoin
