#pragma once

// Images made of nothing, for tests and for measuring speed: each class has a pattern of its own,
// each image noise on top. Pixels depend on the split and the number of the image alone.

#include <string>

#include "adjoin/data/source.h"

namespace adjoin::data {

/// `form` is CxHxWxCLASSES or CxHxWxCLASSESxCOUNT: COUNT images to train, a quarter of that to
/// validate. Error(kUsage) saying which part is wrong.
Source synthetic_source(const std::string& name, const std::string& form);

}  // namespace adjoin::data
