#pragma once

// One transformer block as plain data. Blocks of a network need not be alike: heads x head_dim may
// differ from the residual width, hidden is any width.

#include <optional>

#include "adjoin/core/fields.h"
#include "adjoin/spec/mixer.h"
#include "adjoin/spec/norms.h"
#include "adjoin/spec/shortcut.h"

namespace adjoin {

struct BlockSpec {
  int64_t origin = 0;  ///< index of the block it came from, over all blocks of the large network
  int64_t heads = 1;
  int64_t head_dim = 1;
  int64_t hidden = 1;  ///< units of the MLP
  NormPlacement norm = NormPlacement::kPre;
  Mixer mixer;
  std::optional<Shortcut> shortcut;  ///< beside the identity
  double drop_path = 0;              ///< chance that a sample skips a branch in training

  /// Width of q, of k and of v.
  int64_t attention_dim() const { return heads * head_dim; }

  bool operator==(const BlockSpec&) const = default;
};

template <class Visitor>
void fields(Visitor& visit, BlockSpec& block) {
  visit("origin", block.origin, Range{0, 1e6});
  visit("heads", block.heads, Range{1, 1024});
  visit("head_dim", block.head_dim, Range{1, 4096});
  visit("hidden", block.hidden, Range{1, 262144});
  visit("norm", block.norm);
  visit("mixer", block.mixer);
  visit("shortcut", block.shortcut);
  visit("drop_path", block.drop_path, Range{0, 0.99});
}

/// As it is, or through an augmented shortcut of one circulant branch (shortcut.h).
enum class SkipKind { kIdentity, kCirculant };

template <>
inline constexpr auto kEnumNames<SkipKind> = std::to_array<EnumName<SkipKind>>(
    {{"identity", SkipKind::kIdentity}, {"circulant", SkipKind::kCirculant}});

/// Adds the output of block `from` to the input of block `to`; both count over all blocks.
struct Skip {
  int64_t from = 0;
  int64_t to = 0;
  SkipKind kind = SkipKind::kIdentity;

  bool operator==(const Skip&) const = default;
};

template <class Visitor>
void fields(Visitor& visit, Skip& skip) {
  visit("from", skip.from, Range{0, 1e6});
  visit("to", skip.to, Range{0, 1e6});
  visit("kind", skip.kind);
}

/// What the head reads: the class token, or the mean over the patch tokens.
enum class PoolKind { kToken, kAvg };

template <>
inline constexpr auto kEnumNames<PoolKind> =
    std::to_array<EnumName<PoolKind>>({{"token", PoolKind::kToken}, {"avg", PoolKind::kAvg}});

/// A learned table, or the fixed sines and cosines of T2T-ViT.
enum class PosEmbed { kLearned, kSinusoid };

template <>
inline constexpr auto kEnumNames<PosEmbed> = std::to_array<EnumName<PosEmbed>>(
    {{"learned", PosEmbed::kLearned}, {"sinusoid", PosEmbed::kSinusoid}});

}  // namespace adjoin
