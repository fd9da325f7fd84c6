#pragma once

// The named models. A name expands to a full ModelSpec; timm's names are the public ids.

#include <string>
#include <vector>

#include "adjoin/spec/model_spec.h"

namespace adjoin {

/// Every name of the catalog, family by family, small to large.
std::vector<std::string> catalog_names();

/// The spec of a name; a tag after a dot ("deit_tiny_patch16_224.fb_in1k") is ignored.
/// Error(kUsage) with the nearest names when there is none.
ModelSpec catalog_spec(std::string_view name);

}  // namespace adjoin
