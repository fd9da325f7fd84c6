#pragma once

// Safetensors files in memory, sound or not: whatever header and however much data.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "adjoin/io/file_bytes.h"

namespace adjoin::io {

inline std::vector<std::byte> to_bytes(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

/// Length, header, `data_bytes` bytes that count up.
inline std::vector<std::byte> make_safetensors(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::vector<std::byte> file(sizeof length + header.size() + data_bytes);
  std::memcpy(file.data(), &length, sizeof length);
  std::memcpy(file.data() + sizeof length, header.data(), header.size());
  for (size_t i = 0; i < data_bytes; ++i) {
    file[sizeof length + header.size() + i] = static_cast<std::byte>(i);
  }
  return file;
}

}  // namespace adjoin::io
