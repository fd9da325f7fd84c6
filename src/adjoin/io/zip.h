#pragma once

// The zip container of PyTorch >= 1.6: stored entries only, zip64 included. Everything the
// directory says is checked against the file before an entry is handed out.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adjoin/io/file_bytes.h"
#include "adjoin/io/limits.h"

namespace adjoin::io {

struct ZipEntry {
  std::string_view name;
  uint64_t header = 0;              ///< where its local header begins
  std::span<const std::byte> data;  ///< as stored, not yet checked against `crc`
  uint32_t crc = 0;
  uint16_t method = 0;  ///< how it is compressed; 0: not at all
  bool is_checked = false;
};

class ZipArchive {
 public:
  /// Error(kData) unless directory, local headers and ranges agree, overlap nowhere and lie inside
  /// the file. `file` must outlive the archive.
  ZipArchive(const FileBytes& file, MemoryBudget& budget);

  /// Sorted by name.
  std::span<const ZipEntry> entries() const { return entries_; }

  /// Error(kData) when an entry is compressed: its bytes could not be used where they lie.
  void require_stored() const;

  /// Null when there is no entry of this name.
  ZipEntry* find(std::string_view name);

  /// The bytes of a stored entry of this archive once their CRC-32 is found right.
  std::span<const std::byte> read(ZipEntry& entry) const;

 private:
  struct Directory {
    uint64_t count = 0;
    uint64_t size = 0;
    uint64_t offset = 0;
  };

  [[noreturn]] void fail(const std::string& what) const;
  size_t find_end() const;
  Directory read_end() const;
  Directory read_end64(size_t locator, Directory end) const;
  void read_directory(const Directory& directory);
  ZipEntry read_record(std::span<const std::byte> record, std::string_view name) const;
  void check_local(ZipEntry& entry, std::span<const std::byte> record, uint64_t size,
                   uint64_t packed) const;
  void check_ranges(uint64_t directory_offset);

  const FileBytes& file_;
  std::vector<ZipEntry> entries_;
};

}  // namespace adjoin::io
