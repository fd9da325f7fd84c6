#pragma once

// Everything the next step depends on, in one file: a safetensors of named tensors with one JSON
// value beside them. Written whole or not at all.

#include <string>
#include <vector>

#include "adjoin/core/json.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::train {

void save_checkpoint(const std::string& path, const Json& state, const NamedTensors& tensors);

/// The JSON of a run's checkpoint, with objects "run", "config", "inputs" and "machine".
/// Error(kData) when the file is none of ours or broken.
Json read_checkpoint_state(const std::string& path);

/// Copies the stored tensors into these. Error(kData) naming one that is missing, unexpected, or of
/// another shape or type: nothing is copied then.
void restore_tensors(const std::string& path, const NamedTensors& tensors);

}  // namespace adjoin::train
