#pragma once

// A ViT in a few words, as lists of architectures hold it:
//
//   {"name": "a", "embed_dim": 192, "depth": 3, "heads": [3, 4, 3], "mlp_ratio": [3.5, 4, 4],
//    "head_dim": 64, "patch_size": 16, "img_size": 224, "num_classes": 1000}

#include "adjoin/core/json.h"
#include "adjoin/spec/model_spec.h"

namespace adjoin {

/// `heads` and `mlp_ratio` are one number or one per block. `head_dim` is a number or
/// "embed_dim/heads". patch_size, img_size and num_classes are 16, 224 and 1000 where they are left
/// out, head_dim "embed_dim/heads". Error(kConfig) naming what is missing, unknown or cannot be
/// built.
ModelSpec spec_from_brief(const Json& json);

/// Whether it is one, rather than a whole spec.
bool is_brief(const Json& json);

/// A file of JSON lines, each a whole spec or a brief, or a .yaml with a network of AutoFormer.
/// Error(kData) naming the line that cannot be built, or whose name came before.
std::vector<ModelSpec> read_architectures(const std::string& path);

}  // namespace adjoin
