#pragma once

// How the tokens of a block see each other: a kind, and the numbers that this kind has.

#include "adjoin/core/fields.h"

namespace adjoin {

/// What each of them computes, and where it comes from, is in docs/blocks.md.
enum class MixerKind {
  kSoftmax,
  kRelative,
  kLinformer,
  kSparseStrided,
  kSparseFixed,
  kLsh,
  kLinear,
  kRecurrent,
};

template <>
inline constexpr auto kEnumNames<MixerKind> =
    std::to_array<EnumName<MixerKind>>({{"softmax", MixerKind::kSoftmax},
                                        {"relative", MixerKind::kRelative},
                                        {"linformer", MixerKind::kLinformer},
                                        {"sparse-strided", MixerKind::kSparseStrided},
                                        {"sparse-fixed", MixerKind::kSparseFixed},
                                        {"lsh", MixerKind::kLsh},
                                        {"linear", MixerKind::kLinear},
                                        {"recurrent", MixerKind::kRecurrent}});

/// Linformer: what has projections of its own. Heads share them, heads as well as keys and values
/// do, or nobody does.
enum class ProjectionShare { kHeads, kKeyValue, kNone };

template <>
inline constexpr auto kEnumNames<ProjectionShare> =
    std::to_array<EnumName<ProjectionShare>>({{"heads", ProjectionShare::kHeads},
                                              {"kv", ProjectionShare::kKeyValue},
                                              {"none", ProjectionShare::kNone}});

/// Sparse: the two sets of keys a pattern has, together or one alone.
enum class SparsePart { kBoth, kLocal, kFar };

template <>
inline constexpr auto kEnumNames<SparsePart> = std::to_array<EnumName<SparsePart>>(
    {{"both", SparsePart::kBoth}, {"local", SparsePart::kLocal}, {"far", SparsePart::kFar}});

struct Mixer {
  MixerKind kind = MixerKind::kSoftmax;
  int64_t distance = 0;  ///< relative: rows or columns apart, beyond which all are alike
  int64_t k = 0;         ///< linformer: what all tokens are summed up to
  ProjectionShare share = ProjectionShare::kHeads;
  int64_t stride = 0;   ///< sparse: tokens of a group
  int64_t band = 0;     ///< sparse-strided: how far the neighbours reach
  int64_t columns = 0;  ///< sparse-fixed: tokens at the end of a group that all see
  SparsePart part = SparsePart::kBoth;
  int64_t chunk = 0;       ///< lsh: tokens that are sorted together
  int64_t rounds = 0;      ///< lsh: hashes
  bool is_causal = false;  ///< a token sees itself and those before it

  bool is_sparse() const {
    return kind == MixerKind::kSparseStrided || kind == MixerKind::kSparseFixed;
  }

  /// Whether it sums up keys and values before a query sees them.
  bool is_linear() const { return kind == MixerKind::kLinear || kind == MixerKind::kRecurrent; }

  bool operator==(const Mixer&) const = default;
};

template <class Visitor>
void fields(Visitor& visit, Mixer& mixer) {
  visit("kind", mixer.kind);
  switch (mixer.kind) {
    case MixerKind::kSoftmax: return;
    case MixerKind::kRelative: visit("distance", mixer.distance, Range{1, 1024}); return;
    case MixerKind::kLinformer:
      visit("k", mixer.k, Range{1, 262144});
      visit("share", mixer.share);
      return;
    case MixerKind::kSparseStrided:
      visit("stride", mixer.stride, Range{1, 262144});
      visit("band", mixer.band, Range{0, 262144});
      visit("part", mixer.part);
      break;
    case MixerKind::kSparseFixed:
      visit("stride", mixer.stride, Range{1, 262144});
      visit("columns", mixer.columns, Range{1, 262144});
      visit("part", mixer.part);
      break;
    case MixerKind::kLsh:
      visit("chunk", mixer.chunk, Range{1, 262144});
      visit("rounds", mixer.rounds, Range{1, 64});
      break;
    case MixerKind::kLinear:
    case MixerKind::kRecurrent: break;
  }
  visit("causal", mixer.is_causal);
}

/// A mixer of this kind that suits so many tokens.
Mixer default_mixer(MixerKind kind, int64_t tokens);

/// Steps of which each needs the one before, for so many tokens.
int64_t sequential_steps(const Mixer& mixer, int64_t tokens);

// ---- lsh

/// Chunks the tokens fill, an even number; there are as many buckets.
inline int64_t lsh_chunks(const Mixer& mixer, int64_t tokens) {
  return 2 * ((tokens + 2 * mixer.chunk - 1) / (2 * mixer.chunk));
}

/// Score of a token with itself, which it sees only when there is no other (Kitaev et al. 2020).
inline constexpr double kSelfScore = -5e4;

// ---- linear

/// Tokens that a causal sum takes at once: inside such a group pairs are multiplied.
inline constexpr int64_t kLinearGroup = 64;

/// Groups that so many tokens fill.
inline int64_t linear_groups(int64_t tokens) { return (tokens + kLinearGroup - 1) / kLinearGroup; }

/// Added to what is divided by.
inline constexpr double kLinearEps = 1e-6;

}  // namespace adjoin
