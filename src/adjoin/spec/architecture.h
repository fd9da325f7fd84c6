#pragma once

// What a search hands over: which blocks of a network stay, how many heads and hidden units they
// keep, where their norms stand, and skips between them. The file fits any network of the same
// blocks, however many classes it knows.
//
//   {"version": 1, "family": "vit", "model": "vit_mini_32",
//    "blocks": [{"name": "blocks.0", "heads": 4, "hidden": 256, "of_heads": 8, "of_hidden": 512,
//                "keep": true, "norm": "pre"}, ..],
//    "skips": [{"from": 0, "to": 3, "kind": "identity"}]}
//
// "keep", "norm" and "skips" may be missing: then all is as in the large network, without skips.

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
