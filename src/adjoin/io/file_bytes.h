#pragma once

// The bytes of a file without a copy of them: a private memory map.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace adjoin::io {

/// Bytes and whoever keeps them alive. Copies share the owner.
struct FileBytes {
  std::string origin;  ///< the path, which opens every message about the file
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

/// Maps a regular file; pages that somebody writes to are copied and never reach the file.
/// Error(kIo) when it cannot be opened, Error(kData) when it is empty or not a regular file.
FileBytes map_file(const std::string& path);

/// Bytes that are in memory already.
FileBytes own_bytes(std::string origin, std::vector<std::byte> bytes);

}  // namespace adjoin::io
