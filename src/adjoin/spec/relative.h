#pragma once

// Positions of keys and values relative to the query, on the grid of a network's patches
// (AutoFormer, Chen et al. 2021): a vector for rows apart and one for columns apart, added up.

#include <vector>

#include "adjoin/spec/block.h"

namespace adjoin {

/// Tables of a block under "..attn.", a row per distance: what is added to keys by rows and by
/// columns apart, then to values.
inline constexpr const char* kRelativeTables[] = {
    "rel_pos_embed_k.embeddings_table_v", "rel_pos_embed_k.embeddings_table_h",
    "rel_pos_embed_v.embeddings_table_v", "rel_pos_embed_v.embeddings_table_h"};

/// Rows of such a table: one for every pair with a class token, then -distance to distance.
inline int64_t relative_rows(const Mixer& mixer) { return 2 * mixer.distance + 2; }

/// The tokens of a block: one or two of a class, then the patches of a square.
struct TokenGrid {
  int64_t classes = 0;
  int64_t side = 0;

  int64_t patches() const { return side * side; }
};

TokenGrid token_grid(int64_t tokens);

/// Rows of a table for a query at each place along a side: one per place of a key, then that of a
/// class token. (side, side + 1)
std::vector<int64_t> relative_table_rows(int64_t side, int64_t distance);

}  // namespace adjoin
