#pragma once

// What `compress` and `search` say of the networks they trained.

#include <string>
#include <vector>

#include "adjoin/core/json.h"

namespace adjoin::cli {

/// Adds "latency_ms", the median time of one image on the CPU in float32, to each of these.
void add_latencies(const std::vector<Json*>& networks);

/// Rows of a table: accuracy and costs, the MACs as shares of the first one's.
void print_networks(const std::vector<std::vector<Json>>& runs);

}  // namespace adjoin::cli
