#pragma once

// What `search` says of what it found.

#include "adjoin/core/json.h"

namespace adjoin::cli {

/// A line or two for people, whatever the method.
void print_search(const Json& run);

}  // namespace adjoin::cli
