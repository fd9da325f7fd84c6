#include "adjoin/spec/sparse.h"

#include <cstdlib>

namespace adjoin {
namespace {

bool is_allowed(const Mixer& mixer, int64_t i, int64_t j) { return !mixer.is_causal || j <= i; }

/// Place of the far key number `index` of query `i`.
int64_t far_key(const Mixer& mixer, int64_t i, int64_t index) {
  if (mixer.kind == MixerKind::kSparseStrided) return index * mixer.stride + i % mixer.stride;
  const int64_t group = index / mixer.columns;
  return (group + 1) * mixer.stride - mixer.columns + index % mixer.columns;
}

}  // namespace

bool sees_near(const Mixer& mixer, int64_t i, int64_t j) {
  if (!is_allowed(mixer, i, j)) return false;
  return mixer.kind == MixerKind::kSparseStrided ? std::abs(i - j) <= mixer.band
                                                 : i / mixer.stride == j / mixer.stride;
}

bool sees_far(const Mixer& mixer, int64_t i, int64_t j) {
  if (!is_allowed(mixer, i, j)) return false;
  return mixer.kind == MixerKind::kSparseStrided ? (i - j) % mixer.stride == 0
                                                 : j % mixer.stride >= mixer.stride - mixer.columns;
}

bool sees(const Mixer& mixer, int64_t i, int64_t j) {
  switch (mixer.part) {
    case SparsePart::kLocal: return sees_near(mixer, i, j);
    case SparsePart::kFar: return sees_far(mixer, i, j);
    case SparsePart::kBoth: break;
  }
  return sees_near(mixer, i, j) || sees_far(mixer, i, j);
}

int64_t sparse_pairs(const Mixer& mixer, int64_t tokens) {
  int64_t pairs = 0;
  for (int64_t i = 0; i < tokens; ++i) {
    for (int64_t j = 0; j < tokens; ++j) pairs += sees(mixer, i, j) ? 1 : 0;
  }
  return pairs;
}

SparseLayout sparse_layout(const Mixer& mixer, int64_t tokens) {
  const bool is_strided = mixer.kind == MixerKind::kSparseStrided;
  SparseLayout layout;
  layout.groups = (tokens + mixer.stride - 1) / mixer.stride;
  layout.padded = layout.groups * mixer.stride;
  if (mixer.part != SparsePart::kFar) {
    const int64_t reach = (mixer.band + mixer.stride - 1) / mixer.stride;
    layout.before = is_strided ? std::min(reach, layout.groups - 1) : 0;
    layout.after = mixer.is_causal ? 0 : layout.before;
    layout.near = (layout.before + 1 + layout.after) * mixer.stride;
  }
  if (mixer.part != SparsePart::kLocal) {
    layout.far = layout.groups * (is_strided ? 1 : mixer.columns);
  }
  return layout;
}

std::vector<bool> sparse_mask(const Mixer& mixer, int64_t tokens) {
  const SparseLayout layout = sparse_layout(mixer, tokens);
  std::vector<bool> mask;
  mask.reserve(static_cast<size_t>(layout.padded * (layout.near + layout.far)));
  const auto is_there = [&](int64_t j) { return j >= 0 && j < tokens; };
  for (int64_t i = 0; i < layout.padded; ++i) {
    const int64_t first = (i / mixer.stride - layout.before) * mixer.stride;
    for (int64_t j = first; j < first + layout.near; ++j) {
      mask.push_back(i >= tokens || (is_there(j) && sees_near(mixer, i, j)));
    }
    for (int64_t index = 0; index < layout.far; ++index) {
      const int64_t j = far_key(mixer, i, index);
      const bool is_near = layout.near > 0 && sees_near(mixer, i, j);
      mask.push_back(i >= tokens || (is_there(j) && sees_far(mixer, i, j) && !is_near));
    }
  }
  return mask;
}

}  // namespace adjoin
