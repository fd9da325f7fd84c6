#pragma once

// Two ways to see why deep attention keeps its rank (Dong, Cordonnier and Loukas 2021): its output
// as a sum over paths through the heads, and the residual of networks without some of their parts.

#include <string>

#include "adjoin/core/json.h"

namespace adjoin::report {

/// "paths" of the result: what paths of each length give. Empty where there is nothing.
std::string paths_section(const Json& paths);

/// "depth" of the result: a curve over the blocks for each kind of network. Empty where there is
/// nothing.
std::string depth_section(const Json& depth);

}  // namespace adjoin::report
