#pragma once

// Where the layer norms of a block stand.

#include "adjoin/core/fields.h"

namespace adjoin {

/// Before each half of the block, or after its sum (Vaswani et al. 2017), or at the end of its
/// branch: with one more before the MLP (the supplement of VTCA), or without (Swin V2, Liu et al.
/// 2022).
enum class NormPlacement { kPre, kPost, kResPost, kResPostV2 };

template <>
inline constexpr auto kEnumNames<NormPlacement> =
    std::to_array<EnumName<NormPlacement>>({{"pre", NormPlacement::kPre},
                                            {"post", NormPlacement::kPost},
                                            {"res-post", NormPlacement::kResPost},
                                            {"res-post-v2", NormPlacement::kResPostV2}});

/// The norms of one half of a block, x -> last(x + after(branch(before(x)))); null: none.
struct HalfNorms {
  const char* before = nullptr;
  const char* after = nullptr;
  const char* last = nullptr;
};

constexpr HalfNorms attention_norms(NormPlacement placement) {
  switch (placement) {
    case NormPlacement::kPre: return {.before = "norm1."};
    case NormPlacement::kPost: return {.last = "norm1."};
    case NormPlacement::kResPost:
    case NormPlacement::kResPostV2: return {.after = "norm1."};
  }
  return {};
}

constexpr HalfNorms mlp_norms(NormPlacement placement) {
  switch (placement) {
    case NormPlacement::kPre: return {.before = "norm2."};
    case NormPlacement::kPost: return {.last = "norm2."};
    case NormPlacement::kResPost: return {.before = "norm2.", .after = "norm3."};
    case NormPlacement::kResPostV2: return {.after = "norm2."};
  }
  return {};
}

}  // namespace adjoin
