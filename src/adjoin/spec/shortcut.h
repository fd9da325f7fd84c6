#pragma once

// Augmented shortcuts (Tang et al. 2021): beside the identity, cheap projections of what a half of
// the block reads are added to what it gives.

#include "adjoin/core/fields.h"

namespace adjoin {

/// A matrix of blocks that are circulant, each given by its first column, or one of free entries.
enum class ShortcutKind { kCirculant, kDense };

template <>
inline constexpr auto kEnumNames<ShortcutKind> = std::to_array<EnumName<ShortcutKind>>(
    {{"circulant", ShortcutKind::kCirculant}, {"dense", ShortcutKind::kDense}});

struct Shortcut {
  ShortcutKind kind = ShortcutKind::kCirculant;
  int64_t branches = 2;  ///< beside attention, and as many beside the MLP
  int64_t blocks = 4;    ///< circulant: along a side of the matrix
  bool has_gelu = true;
  double scale = 1;  ///< of the sum; the authors' code has 3/4

  bool operator==(const Shortcut&) const = default;
};

/// The one that a skip of kind circulant goes through: one branch, in four blocks where they fit.
constexpr Shortcut skip_shortcut(int64_t embed_dim) {
  Shortcut shortcut;
  shortcut.branches = 1;
  while (embed_dim % shortcut.blocks != 0) shortcut.blocks /= 2;
  return shortcut;
}

template <class Visitor>
void fields(Visitor& visit, Shortcut& shortcut) {
  visit("kind", shortcut.kind);
  visit("branches", shortcut.branches, Range{0, 64});
  if (shortcut.kind == ShortcutKind::kCirculant) visit("blocks", shortcut.blocks, Range{1, 16384});
  visit("gelu", shortcut.has_gelu);
  visit("scale", shortcut.scale, Range{0.01, 10});
}

}  // namespace adjoin
