#pragma once

#include <iosfwd>

#include "adjoin/core/json.h"

namespace adjoin::cli {

/// What `adjoin inspect --json` prints, as tables for people.
void print_inspection(std::ostream& out, const Json& result);

}  // namespace adjoin::cli
