#pragma once

// One entry of a tar file: ustar, GNU (long names, sizes in base 256) and pax (path, size). Every
// length is checked against the file. Sparse files, parts of files and compressed tars are refused.
// Formats: POSIX.1-2017, pax; the GNU tar manual, appendix D.

#include <cstdint>
#include <optional>
#include <string>

#include "adjoin/io/file_bytes.h"

namespace adjoin::data {

enum class TarKind { kFile, kFolder, kLink, kOther };

struct TarEntry {
  std::string path;  ///< as written; nothing is ever created at it
  TarKind kind = TarKind::kOther;
  std::span<const std::byte> data;
  uint64_t next = 0;  ///< where the entry after it begins
};

/// The entry that begins at byte `at`, with the headers that extend it; nothing at the end of the
/// archive. Error(kData) when it is broken, or the file ends without its end mark.
std::optional<TarEntry> read_tar_entry(const io::FileBytes& file, uint64_t at);

}  // namespace adjoin::data
