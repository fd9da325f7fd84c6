#pragma once

// The tensors of a derived network, cut out of those of the large one.

#include "adjoin/spec/derive.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::models {

/// Views of the large network's tensors, which follow every change of them. Where a slice keeps a
/// part of each of several groups, the groups are an axis of their own, (3, heads x head_dim, C)
/// for a qkv: no other view exists, and the layers take it. Tensors the large network does not have
/// start by their init rule.
Weights views(const Derived& derived, const Weights& large, uint64_t seed = 0);

/// The same values as plain tensors of the shapes of tensors(derived.spec), sharing nothing.
Weights copies(const Derived& derived, const Weights& large, uint64_t seed = 0);

}  // namespace adjoin::models
