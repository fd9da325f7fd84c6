#pragma once

// The safetensors format: 8 bytes of header length, a JSON header, the numbers. Reading trusts
// nothing: header size, JSON, types, shapes, bounds, overlaps, holes and duplicate names are
// checked before any number is looked at. https://github.com/huggingface/safetensors

#include <span>
#include <string>
#include <vector>

#include "adjoin/io/tensor_file.h"

namespace adjoin::io {

/// Whether the bytes open like a header: its length, then "{".
bool looks_like_safetensors(const FileBytes& file);

/// Error(kData) in one sentence that opens with the origin unless the whole file is sound.
TensorFile read_safetensors(FileBytes file);

/// One tensor to be written, row-major.
struct TensorToWrite {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

/// Writes the file whole or not at all. Wider types come first, so that every tensor is aligned;
/// otherwise the order is that given. The same arguments give the same bytes.
void write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors,
                       const std::map<std::string, std::string, std::less<>>& metadata);

}  // namespace adjoin::io
