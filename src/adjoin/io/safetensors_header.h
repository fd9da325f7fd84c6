#pragma once

// The JSON header of a safetensors file, read in one pass without building a JSON value.

#include <cstddef>
#include <span>
#include <string_view>

#include "adjoin/io/limits.h"
#include "adjoin/io/tensor_file.h"

namespace adjoin::io {

inline constexpr size_t kMostHeaderBytes = 100'000'000;
inline constexpr size_t kMostTensors = 100'000;
inline constexpr std::string_view kMetadataKey = "__metadata__";

/// What reading the header of a file may take. Error(kData) when a name or text in it is too long
/// for a file of this size: a writer asks too, so that what is written can be read.
MemoryBudget header_budget(std::string_view header, size_t file_bytes, const std::string& origin);

/// Fills in tensors and metadata. Each tensor lies inside `data` and has as many bytes as its shape
/// says; whether they overlap is not looked at. Error(kData) opens with `result.file.origin`.
void read_header(std::string_view header, std::span<const std::byte> data, TensorFile& result);

}  // namespace adjoin::io
