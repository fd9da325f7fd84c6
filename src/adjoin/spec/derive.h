#pragma once

// A sub-network is derived: a spec, and for each of its tensors the slice of the large network's
// tensors it occupies.
//
//   const Derived small = derive(spec, choice_from_alphas(spec, {4}), Geometry::kKept);
//   cost(small.spec);                                  // a spec like any other
//   models::forward(small.spec, models::views(small, weights), images);

#include <optional>
#include <string>
#include <vector>

#include "adjoin/spec/choice.h"
#include "adjoin/spec/tensors.h"

namespace adjoin {

/// Whether the residual stream keeps its width, or is divided like everything else. Narrow follows
/// equation 3.3 of the adjoined-network thesis and so needs one factor for all blocks.
enum class Geometry { kKept, kNarrow };

template <>
inline constexpr auto kEnumNames<Geometry> =
    std::to_array<EnumName<Geometry>>({{"kept", Geometry::kKept}, {"narrow", Geometry::kNarrow}});

/// Where a tensor lies in the large network: in tensor `name`, whose axes are `axes`, it has the
/// first entries of every group.
struct Slice {
  std::string name;
  std::vector<Axis> axes;
};

/// A tensor of the small network and where it comes from. Without a slice it is the small network's
/// own: the large one has no such tensor, or they are to differ.
struct Source {
  TensorInfo tensor;
  std::optional<Slice> slice;
};

struct Derived {
  ModelSpec spec;
  std::vector<Source> sources;  ///< in the order of tensors(spec)
};

/// The small network inside a large one. Blocks keep the `origin` they have in the large one.
/// Error(kUsage) when the choice does not fit the network: another number of blocks, more heads or
/// units than there are, a skip to a removed block; with kNarrow also blocks that are not all
/// divided by the same factor, or a width that this factor does not divide.
Derived derive(const ModelSpec& large, const Choice& choice, Geometry geometry);

/// Whether everything before the first block is the large network's own, unsliced: both then make
/// the same tokens of an image.
bool has_whole_embedding(const Derived& small);

}  // namespace adjoin
