#pragma once

// Fixed parts of a split. Which images are taken is told by hashes of their numbers, so it is the
// same in every run and has nothing to do with the order of the files.

#include <utility>

#include "adjoin/data/dataset.h"

namespace adjoin::data {

/// `count` images spread evenly over the classes: while images last, no class has more than one
/// more than another. A larger count takes the same ones and more. 0, or more than there are: all.
Split limited(Split split, int64_t count);

/// What stays and what is set aside: `fraction` of each class, rounded, at least one and not all of
/// it; nothing of a class of one. A larger fraction sets aside the same ones and more. Error(kData)
/// when there is nothing to set aside.
std::pair<Split, Split> divided(const Split& split, double fraction);

}  // namespace adjoin::data
