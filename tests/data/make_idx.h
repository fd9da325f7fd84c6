#pragma once

// idx files in memory, plain or packed by gzip, with any header.

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace adjoin::data {

inline std::string big_endian(uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

inline std::string make_idx(const std::vector<uint32_t>& shape, const std::string& body) {
  std::string file = big_endian(0x800 | static_cast<uint32_t>(shape.size()));
  for (const uint32_t size : shape) file += big_endian(size);
  return file + body;
}

inline std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 9, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// Bytes that count up from `first`.
inline std::string counting(size_t size, int first = 0) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(first + static_cast<int>(i));
  return bytes;
}

}  // namespace adjoin::data
