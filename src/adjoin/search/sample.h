#pragma once

#include <vector>

#include "adjoin/search/space.h"
#include "adjoin/spec/autoformer.h"

namespace adjoin::search {

/// Different networks of a space drawn at random, every candidate of a block equally likely, none
/// above the limits; named by their factors, "vit_mini_32-1.2.4.8". Fewer than asked for where the
/// space holds no more, or they cannot be found.
std::vector<ModelSpec> sampled(const Space& space, int64_t count, uint64_t seed,
                               const Target& limits);

/// The same of AutoFormer's networks, named by width, heads and hidden units of their blocks.
std::vector<ModelSpec> sampled(const AutoformerSpace& space, int64_t count, uint64_t seed,
                               const Target& limits);

}  // namespace adjoin::search
