#pragma once

#include <string>

#include "adjoin/core/json.h"

namespace adjoin::report {

/// The page of a look inside a network, or two: charts over depth, attention, what theorems say.
/// `result` is what `adjoin inspect --json` prints; whatever it lacks is left out.
std::string inspect_page(const Json& result);

}  // namespace adjoin::report
