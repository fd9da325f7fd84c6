#pragma once

// The formats that are fuzzed. A new one is a row: what its files are made of, how
// they are put together, and the reader.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adjoin/io/tensor_file.h"
#include "fuzz/mutate.h"

namespace adjoin::fuzz {

struct Format {
  std::string_view name;
  size_t slack;                             ///< memory beyond twice the file that reading may take
  std::vector<std::string> (*cores)();      ///< sound inner parts; the last is large, drawn seldom
  std::string (*wrap)(const std::string&);  ///< a file around a core, with checksums that hold
  std::vector<std::string> (*tokens)();     ///< pieces that mutations insert
  Region (*focus)(const std::string&);      ///< the part of a whole file worth breaking
  void (*repair)(std::string&);             ///< sets the checksums of a broken file right again
  io::TensorFile (*parse)(io::FileBytes);   ///< Error(kData) or a result that is sound
};

std::span<const Format> formats();

}  // namespace adjoin::fuzz
