#pragma once

#include <string>

#include "adjoin/core/json.h"

namespace adjoin::report {

/// The page of a ranking: with accuracies that were measured a table of verdicts and a plot per
/// proxy of scores beside them; without, scores beside parameters. `result` is what `adjoin rank
/// --json` prints.
std::string rank_page(const Json& result);

}  // namespace adjoin::report
