#pragma once

// The small network that a user means by --alpha, --alphas or --keep, and --geometry.

#include <optional>
#include <string>

#include "adjoin/spec/derive.h"

namespace adjoin {

/// One of the first three says what to keep of every block.
struct ChoiceText {
  std::optional<int64_t> alpha = {};  ///< of all blocks
  std::string alphas = {};            ///< "1,2,2,4": of each block; or "@FILE.json"
  std::optional<double> keep = {};    ///< share of heads and hidden units
  Geometry geometry = Geometry::kKept;
};

/// Nothing when the text says nothing. Error(kUsage) when it says two things, or something the
/// network cannot do.
std::optional<Derived> chosen_part(const ModelSpec& large, const ChoiceText& options);

}  // namespace adjoin
