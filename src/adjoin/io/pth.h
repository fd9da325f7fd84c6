#pragma once

// PyTorch's .pth, .pt, .bin and .pth.tar files, read without Python and without running anything.
// The pickle inside is interpreted by a restricted reader: containers, numbers, strings and
// tensors are built, every other global becomes an opaque value and is never called.
//
// Both containers are read: the zip of PyTorch >= 1.6 (zip64 included) and the legacy stream.

#include "adjoin/io/tensor_file.h"

namespace adjoin::io {

/// Whether the bytes open like something torch.save writes or ever wrote: a zip, its own stream, or
/// a tar (which `read_pth` refuses).
bool looks_like_pth(const FileBytes& file);

/// The state_dict of a checkpoint: the dictionary itself, or what it holds under "state_dict_ema",
/// "model_ema", "model" or "state_dict" (in this order: averaged weights are the ones to use), at
/// most two of them inside each other; "module." and "_orig_mod." that open every name go.
/// Error(kData) unless sound.
TensorFile read_pth(FileBytes file);

}  // namespace adjoin::io
