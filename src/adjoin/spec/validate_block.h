#pragma once

#include "adjoin/spec/model_spec.h"

namespace adjoin {

/// Throws Error(kConfig), naming the field and the legal values, unless the block's mixer and
/// shortcut suit its place.
void validate_block(const PlacedBlock& placed);

}  // namespace adjoin
