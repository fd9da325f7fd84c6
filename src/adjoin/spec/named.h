#pragma once

// A network as users name it: by the catalog, or by a file that describes it.

#include <string>

#include "adjoin/spec/model_spec.h"

namespace adjoin {

/// Whether it ends as files do that describe networks.
bool is_spec_file(std::string_view name);

/// A name of the catalog, a .json with a whole spec or a brief (brief.h), or a .yaml with a network
/// of AutoFormer (autoformer.h). Error(kUsage) for a name that the catalog lacks; what is wrong in
/// a file is Error(kData) and opens with its path.
ModelSpec named_spec(const std::string& name_or_file);

}  // namespace adjoin
