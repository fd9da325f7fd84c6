#pragma once

// What every checkpoint format reads to: named tensors that lie in the bytes of a file, and the
// text beside them.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "adjoin/io/file_bytes.h"

namespace adjoin::io {

enum class Dtype { kBool, kU8, kI8, kI16, kI32, kI64, kF16, kBF16, kF32, kF64 };

/// Bytes of one number.
size_t item_size(Dtype dtype);

/// "F32", "BF16", ..: the words of safetensors.
std::string_view dtype_name(Dtype dtype);

/// A tensor where it lies. Everything that shape and strides reach is inside the file's bytes;
/// `data` need not be aligned.
struct StoredTensor {
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  ///< in numbers, not bytes; never negative
  const std::byte* data = nullptr;

  int64_t numel() const;
  bool is_contiguous() const;

  /// Bytes from the first number to the end of the last one that shape and strides reach.
  size_t reach() const;
};

/// Strides of a row-major tensor.
std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& shape);

struct TensorFile {
  FileBytes file;
  std::map<std::string, StoredTensor, std::less<>> tensors;
  std::map<std::string, std::string, std::less<>> metadata;  ///< of a safetensors file
  std::vector<std::string> not_tensors;  ///< entries of a state_dict that hold something else
  std::vector<std::string> notes;        ///< what was decided for the user, a sentence each
};

}  // namespace adjoin::io
