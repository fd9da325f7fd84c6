#pragma once

// How much memory this program holds through operator new. Single-threaded.

#include <cstdint>

namespace adjoin::fuzz {

/// Starts over at 0; what is freed later and was there before counts as negative.
void start_counting();

/// The most bytes held at once since `start_counting`.
int64_t peak_bytes();

}  // namespace adjoin::fuzz
