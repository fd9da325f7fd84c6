#pragma once

// What the bits of a result depend on besides config and seed.

#include <string>
#include <vector>

#include "adjoin/core/json.h"

namespace adjoin::train {

/// Threads, kind of processor and library versions of this process.
Json machine();

/// A sentence for each thing that was different when a checkpoint was written.
std::vector<std::string> machine_differences(const Json& then);

}  // namespace adjoin::train
