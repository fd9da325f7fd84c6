#pragma once

// Which keys a query sees in sparse attention (Child et al. 2019), and how the pattern is computed
// as dense blocks: groups of `stride` tokens, each with the groups around it, and what is far.
//
//   strided: the keys at most `band` away, and those a multiple of `stride` away
//   fixed:   the keys of its own group, and the last `columns` of every group

#include <vector>

#include "adjoin/spec/mixer.h"

namespace adjoin {

/// Whether query i sees key j, by either of the two sets of the pattern.
bool sees_near(const Mixer& mixer, int64_t i, int64_t j);
bool sees_far(const Mixer& mixer, int64_t i, int64_t j);
bool sees(const Mixer& mixer, int64_t i, int64_t j);

/// Pairs of so many tokens that see each other.
int64_t sparse_pairs(const Mixer& mixer, int64_t tokens);

/// The pattern as blocks, for tokens filled up to whole groups.
struct SparseLayout {
  int64_t groups = 0;
  int64_t padded = 0;  ///< tokens with the filling
  int64_t before = 0;  ///< groups before and after its own whose keys a query is compared with
  int64_t after = 0;
  int64_t near = 0;  ///< keys of these per query; 0 where the part is left out
  int64_t far = 0;   ///< further keys per query
};

SparseLayout sparse_layout(const Mixer& mixer, int64_t tokens);

/// For every query of a layout, first the keys of the groups around it, then the far ones: whether
/// it sees them, each key once. Queries of the filling see all.
///
/// (padded, near + far)
std::vector<bool> sparse_mask(const Mixer& mixer, int64_t tokens);

}  // namespace adjoin
