#pragma once

// What a search hands over: how many heads and hidden units every block of a network keeps. The
// file fits any network of the same blocks, however many classes it knows.
//
//   {"version": 1, "family": "vit", "model": "vit_mini_32",
//    "blocks": [{"name": "blocks.0", "heads": 4, "hidden": 256, "of_heads": 8, "of_hidden": 512},
//    ..]}

#include <string>

#include "adjoin/core/json.h"
#include "adjoin/spec/choice.h"

namespace adjoin {

Json architecture_to_json(const ModelSpec& large, const Choice& choice);

/// Whether a file holds one, rather than a spec.
bool is_architecture(const Json& json);

/// Error(kData) opening with `path` when it is damaged; Error(kUsage) when it is of a network with
/// other blocks than `large`.
Choice architecture_from_json(const ModelSpec& large, const Json& json, const std::string& path);

}  // namespace adjoin
