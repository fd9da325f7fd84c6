#pragma once

// The tensors of a derived network, cut out of those of the large one.

#include "adjoin/spec/derive.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::models {

/// Views of the large network's tensors, which follow every change of them. Where a slice keeps a
/// part of each of several groups, the groups are an axis of their own, (3, heads x head_dim, C)
/// for a qkv: no other view exists, and the layers take it. Tensors without a slice come from
/// `own`; those it lacks start by their init rule.
Weights views(const Derived& derived, const Weights& large, const Weights& own = {});

/// What the large network lacks, by its init rules.
Weights fresh_tensors(const Derived& derived, uint64_t seed);

/// Views as plain tensors of the shapes of tensors(derived.spec), sharing nothing.
Weights plain(const Derived& derived, const Weights& views);

/// Both: the small network as a model of its own.
Weights copies(const Derived& derived, const Weights& large, const Weights& own = {});

}  // namespace adjoin::models
