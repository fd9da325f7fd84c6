#pragma once

// A Choice says what to do to a network: which blocks stay, how many heads and hidden units each
// keeps, which blocks are joined by skips. Compression factors, keep ratios and the architecture
// file of a search are ways to write one.

#include <string>
#include <vector>

#include "adjoin/spec/model_spec.h"

namespace adjoin {

/// What becomes of one block.
struct BlockChoice {
  bool keep = true;
  int64_t heads = 1;  ///< of a block that stays: its first ones
  int64_t hidden = 1;
  NormPlacement norm = NormPlacement::kPre;
  Mixer mixer;

  bool operator==(const BlockChoice&) const = default;
};

struct Choice {
  std::vector<BlockChoice> blocks;  ///< one per block of the large network
  std::vector<Skip> skips;          ///< of the small network, between blocks of the large one

  bool operator==(const Choice&) const = default;
};

/// The choice that changes nothing.
Choice keep_everything(const ModelSpec& spec);

/// Heads and hidden units divided by a factor: one for all blocks, or one per block. Error(kUsage),
/// naming the block and the legal factors, when one does not divide both.
Choice choice_from_alphas(const ModelSpec& spec, const std::vector<int64_t>& alphas);

/// A share of every block: heads rounded to the nearest number, hidden units to the nearest
/// multiple of 8; at least one head and 8 units (or all, where there are fewer).
Choice choice_from_keep(const ModelSpec& spec, double keep);

/// The choice that makes `small` out of `large`: blocks are matched by `origin`. Error(kUsage) when
/// they are of different families, the large network lacks a block, or one of its parts is of
/// another kind.
Choice choice_between(const ModelSpec& large, const ModelSpec& small);

}  // namespace adjoin
