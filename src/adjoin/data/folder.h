#pragma once

// Images as files, a folder for each class: train/cat/1.jpg, val/cat/2.png, .. No image is opened
// before it is read.

#include <string>

#include "adjoin/data/source.h"

namespace adjoin::data {

/// A folder with train/ and val/ (or validation/ or test/), or of classes alone. Classes are sorted
/// by the bytes of their names, as torchvision sorts them.
Source folder_source(const std::string& name, const std::string& folder);

}  // namespace adjoin::data
