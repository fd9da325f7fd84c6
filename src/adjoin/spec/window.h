#pragma once

// What follows from the shape of shifted windows alone (Liu et al. 2021, 3.2).

#include <cstdint>
#include <vector>

#include "adjoin/spec/swin.h"

namespace adjoin {

/// The tokens of the grid window by window, row-major inside, after the grid was rolled by the
/// shift: which token stands in a row.
std::vector<int32_t> window_tokens(const Window& window);

/// The inverse: in which row a token stands.
std::vector<int32_t> window_places(const Window& window);

/// Row of the bias table for every pair (i, j) of positions in a window of M x M:
/// (dh + M - 1)(2M - 1) + (dw + M - 1) with (dh, dw) = position i - position j, row-major.
std::vector<int64_t> relative_position_rows(int64_t size);

/// Of every window the pairs (i, j) that share it only because the image was rolled.
std::vector<bool> strangers(const Window& window);

/// What is added to the score of two strangers, as in the authors' code.
inline constexpr double kStrangerScore = -100;

}  // namespace adjoin
