#pragma once

// Which network a foreign checkpoint holds, told by the names and shapes of its tensors.

#include <string>
#include <vector>

#include "adjoin/io/tensor_file.h"
#include "adjoin/spec/model_spec.h"

namespace adjoin::io {

struct Recognised {
  ModelSpec spec;
  std::vector<std::string> others;  ///< models of the catalog with the very same tensors
};

/// The first model of the catalog that the tensors fit, with the classes, channels and image size
/// their shapes say. Error(kData) when there is none.
Recognised recognise(const TensorFile& file);

}  // namespace adjoin::io
