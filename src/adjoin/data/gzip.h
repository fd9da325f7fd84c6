#pragma once

// A gzip file in memory, unpacked piece by piece: whoever reads says how much, so a small file
// cannot fill the memory. Of use inside data only.

#include <cstdint>
#include <memory>
#include <vector>

#include "adjoin/io/file_bytes.h"

struct z_stream_s;

namespace adjoin::data {

bool looks_like_gzip(std::span<const std::byte> bytes);

class GzipReader {
 public:
  /// `file` must outlive the reader.
  explicit GzipReader(const io::FileBytes& file);
  ~GzipReader();

  /// The next `size` bytes, allocated as they come. Error(kData) when there are fewer or the file
  /// is broken.
  std::vector<uint8_t> read(uint64_t size);

  /// Error(kData) unless everything was read, the checksum is right and nothing follows.
  void expect_end();

 private:
  /// Unpacks into `out` and gives the number of bytes; fewer only at the end.
  size_t unpack(std::span<uint8_t> out);
  [[noreturn]] void fail(const std::string& what) const;

  const io::FileBytes& file_;
  std::unique_ptr<z_stream_s> stream_;
  size_t consumed_ = 0;  // bytes of the file that were handed to the stream
  bool is_ended_ = false;
};

}  // namespace adjoin::data
