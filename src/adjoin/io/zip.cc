#include "adjoin/io/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "adjoin/core/error.h"
#include "adjoin/core/text.h"

namespace adjoin::io {
namespace {

using Bytes = std::span<const std::byte>;

// Signatures, the sizes of the fixed parts, and the values that say "see the zip64 field".
constexpr uint32_t kLocal = 0x04034b50;
constexpr uint32_t kRecord = 0x02014b50;
constexpr uint32_t kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50;
constexpr uint32_t kLocator64 = 0x07064b50;
constexpr size_t kLocalSize = 30;
constexpr size_t kRecordSize = 46;
constexpr size_t kEndSize = 22;
constexpr size_t kEnd64Size = 56;
constexpr size_t kLocator64Size = 20;
constexpr size_t kMostComment = 65535;
constexpr uint16_t kFull16 = 0xffff;
constexpr uint32_t kFull32 = 0xffffffff;

constexpr uint16_t kEncrypted = 1U << 0;
constexpr uint16_t kSizesFollow = 1U << 3;  // the local header may say 0
constexpr uint16_t kStrongEncryption = 1U << 6;

/// The little-endian number at `offset`; the caller has checked that it is there.
template <class T>
T load(Bytes bytes, size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

bool fits(uint64_t offset, uint64_t size, uint64_t limit) {
  return size <= limit && offset <= limit - size;
}

std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The contents of the zip64 extra field; empty when there is none.
Bytes find_zip64(Bytes extra) {
  constexpr uint16_t kZip64Tag = 1;
  while (extra.size() >= 4) {
    const auto tag = load<uint16_t>(extra, 0);
    const size_t size = load<uint16_t>(extra, 2);
    if (size > extra.size() - 4) return {};
    if (tag == kZip64Tag) return extra.subspan(4, size);
    extra = extra.subspan(4 + size);
  }
  return {};
}

/// Replaces `value` by the next number of the zip64 field when it says so; false when there is
/// none.
bool widen(uint64_t& value, Bytes& zip64) {
  if (value != kFull32) return true;
  if (zip64.size() < sizeof value) return false;
  value = load<uint64_t>(zip64, 0);
  zip64 = zip64.subspan(sizeof value);
  return true;
}

}  // namespace

ZipArchive::ZipArchive(const FileBytes& file, MemoryBudget& budget) : file_(file) {
  const Directory directory = read_end();
  budget.charge_block(directory.count * sizeof(ZipEntry));
  entries_.reserve(directory.count);
  read_directory(directory);
  check_ranges(directory.offset);
}

void ZipArchive::fail(const std::string& what) const {
  throw Error(ErrorKind::kData, file_.origin + ": " + what);
}

/// Where the end record begins: the last place whose comment reaches to the end of the file.
size_t ZipArchive::find_end() const {
  const Bytes bytes = file_.bytes;
  if (bytes.size() >= kEndSize) {
    const size_t last = bytes.size() - kEndSize;
    const size_t first = last > kMostComment ? last - kMostComment : 0;
    for (size_t at = last + 1; at-- > first;) {
      if (load<uint32_t>(bytes, at) != kEnd) continue;
      if (load<uint16_t>(bytes, at + 20) == last - at) return at;
    }
  }
  fail("is a zip without its end record: the file is cut short, or something follows the zip");
}

ZipArchive::Directory ZipArchive::read_end() const {
  const size_t at = find_end();
  const Bytes end = file_.bytes.subspan(at);
  const auto disk = load<uint16_t>(end, 4);
  if (disk != load<uint16_t>(end, 6) || (disk != 0 && disk != kFull16) ||
      load<uint16_t>(end, 8) != load<uint16_t>(end, 10)) {
    fail("is one part of a zip in several files; join them first");
  }
  Directory result{load<uint16_t>(end, 10), load<uint32_t>(end, 12), load<uint32_t>(end, 16)};
  size_t directory_end = at;
  if (at >= kLocator64Size && load<uint32_t>(file_.bytes, at - kLocator64Size) == kLocator64) {
    result = read_end64(at - kLocator64Size, result);
    directory_end = load<uint64_t>(file_.bytes, at - kLocator64Size + 8);
  }
  if (!fits(result.offset, result.size, directory_end) ||
      result.offset + result.size != directory_end) {
    fail(
        fmt::format("is a broken zip: its directory of {} bytes at byte {} does not end at byte {}",
                    result.size, result.offset, directory_end));
  }
  if (result.count > result.size / kRecordSize) {
    fail(fmt::format("is a broken zip: {} entries do not fit a directory of {} bytes", result.count,
                     result.size));
  }
  return result;
}

ZipArchive::Directory ZipArchive::read_end64(size_t locator, Directory end) const {
  const uint64_t at = load<uint64_t>(file_.bytes, locator + 8);
  if (load<uint32_t>(file_.bytes, locator + 4) != 0 ||
      load<uint32_t>(file_.bytes, locator + 16) > 1) {
    fail("is one part of a zip in several files; join them first");
  }
  if (!fits(at, kEnd64Size, locator) || load<uint32_t>(file_.bytes, at) != kEnd64 ||
      load<uint64_t>(file_.bytes, at + 4) != locator - at - 12) {
    fail(fmt::format("is a broken zip: there is no zip64 end record at byte {}", at));
  }
  const Bytes end64 = file_.bytes.subspan(at);
  if (load<uint32_t>(end64, 16) != 0 || load<uint32_t>(end64, 20) != 0) {
    fail("is one part of a zip in several files; join them first");
  }
  const Directory wide{load<uint64_t>(end64, 32), load<uint64_t>(end64, 40),
                       load<uint64_t>(end64, 48)};
  const bool agree = (end.count == kFull16 || end.count == wide.count) &&
                     (end.size == kFull32 || end.size == wide.size) &&
                     (end.offset == kFull32 || end.offset == wide.offset) &&
                     load<uint64_t>(end64, 24) == wide.count;
  if (!agree) fail("is a broken zip: its two end records disagree");
  return wide;
}

void ZipArchive::read_directory(const Directory& directory) {
  Bytes rest = file_.bytes.subspan(directory.offset, directory.size);
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (rest.size() < kRecordSize || load<uint32_t>(rest, 0) != kRecord) {
      fail(fmt::format("is a broken zip: there is no directory record for entry {}", i));
    }
    const size_t name_size = load<uint16_t>(rest, 28);
    const size_t size =
        kRecordSize + name_size + load<uint16_t>(rest, 30) + load<uint16_t>(rest, 32);
    if (size > rest.size()) fail("is a broken zip: its directory is cut short");
    entries_.push_back(
        read_record(rest.first(size), as_text(rest.subspan(kRecordSize, name_size))));
    rest = rest.subspan(size);
  }
  if (!rest.empty()) fail("is a broken zip: its directory has more records than it says");
}

ZipEntry ZipArchive::read_record(Bytes record, std::string_view name) const {
  const auto broken = [&](const std::string& what) {
    fail(fmt::format("zip entry {} {}", in_quotes(name), what));
  };
  const auto flags = load<uint16_t>(record, 8);
  if ((flags & (kEncrypted | kStrongEncryption)) != 0) broken("is encrypted");
  uint64_t size = load<uint32_t>(record, 24);
  uint64_t packed_size = load<uint32_t>(record, 20);
  ZipEntry entry;
  entry.name = name;
  entry.method = load<uint16_t>(record, 10);
  entry.crc = load<uint32_t>(record, 16);
  entry.header = load<uint32_t>(record, 42);
  Bytes zip64 = find_zip64(record.subspan(kRecordSize + name.size(), load<uint16_t>(record, 30)));
  if (!widen(size, zip64) || !widen(packed_size, zip64) || !widen(entry.header, zip64)) {
    broken("lacks its zip64 sizes");
  }
  if (entry.method == 0 && size != packed_size) broken("is stored, but its two sizes differ");
  const auto disk = load<uint16_t>(record, 34);
  if (disk != 0 && disk != kFull16) broken("lies in another file of a zip in several");
  check_local(entry, record, size, packed_size);
  return entry;
}

/// Sets `entry.data` once the local header agrees with the directory.
void ZipArchive::check_local(ZipEntry& entry, Bytes record, uint64_t size, uint64_t packed) const {
  const auto broken = [&](const std::string& what) {
    fail(fmt::format("zip entry {} {}", in_quotes(entry.name), what));
  };
  const size_t total = file_.bytes.size();
  if (!fits(entry.header, kLocalSize, total) ||
      load<uint32_t>(file_.bytes, entry.header) != kLocal) {
    broken(fmt::format("has no local header at byte {}", entry.header));
  }
  const Bytes local = file_.bytes.subspan(entry.header);
  const size_t name_size = load<uint16_t>(local, 26);
  const size_t extra_size = load<uint16_t>(local, 28);
  const size_t header_size = kLocalSize + name_size + extra_size;
  if (!fits(entry.header, header_size, total) || !fits(entry.header + header_size, packed, total)) {
    broken(fmt::format("of {} bytes at byte {} reaches beyond the end of the file", packed,
                       entry.header));
  }
  if (as_text(local.subspan(kLocalSize, name_size)) != entry.name) {
    broken("has another name in its local header");
  }
  const auto flags = load<uint16_t>(local, 6);
  if ((flags & ~kSizesFollow) != (load<uint16_t>(record, 8) & ~kSizesFollow) ||
      load<uint16_t>(local, 8) != entry.method) {
    broken("has other flags or another method in its local header");
  }
  uint64_t local_size = load<uint32_t>(local, 22);
  uint64_t local_packed = load<uint32_t>(local, 18);
  const auto local_crc = load<uint32_t>(local, 14);
  const bool follow = (flags & kSizesFollow) != 0;
  if (!follow || local_size != 0 || local_packed != 0 || local_crc != 0) {
    Bytes zip64 = find_zip64(local.subspan(kLocalSize + name_size, extra_size));
    if (!widen(local_size, zip64) || !widen(local_packed, zip64) || local_size != size ||
        local_packed != packed || local_crc != entry.crc) {
      broken("has other sizes or another CRC in its local header");
    }
  }
  entry.data = local.subspan(header_size, packed);
}

/// No two entries share a byte or a name; leaves them sorted by name.
void ZipArchive::check_ranges(uint64_t directory_offset) {
  std::sort(entries_.begin(), entries_.end(),
            [](const ZipEntry& a, const ZipEntry& b) { return a.header < b.header; });
  const auto end_of = [&](const ZipEntry& entry) {
    return static_cast<uint64_t>(entry.data.data() - file_.bytes.data()) + entry.data.size();
  };
  for (size_t i = 0; i < entries_.size(); ++i) {
    const bool is_last = i + 1 == entries_.size();
    if (end_of(entries_[i]) > (is_last ? directory_offset : entries_[i + 1].header)) {
      fail(fmt::format("is a broken zip: entry {} overlaps {}", in_quotes(entries_[i].name),
                       is_last ? "the directory" : in_quotes(entries_[i + 1].name)));
    }
  }
  std::sort(entries_.begin(), entries_.end(),
            [](const ZipEntry& a, const ZipEntry& b) { return a.name < b.name; });
  const auto twice =
      std::adjacent_find(entries_.begin(), entries_.end(),
                         [](const ZipEntry& a, const ZipEntry& b) { return a.name == b.name; });
  if (twice != entries_.end()) {
    fail(fmt::format("is a broken zip: entry {} stands twice", in_quotes(twice->name)));
  }
}

void ZipArchive::require_stored() const {
  for (const ZipEntry& entry : entries_) {
    if (entry.method == 0) continue;
    fail(
        fmt::format("zip entry {} is compressed (method {}), but torch.save stores entries as they "
                    "are; save it again with torch.save",
                    in_quotes(entry.name), entry.method));
  }
}

ZipEntry* ZipArchive::find(std::string_view name) {
  const auto found = std::lower_bound(
      entries_.begin(), entries_.end(), name,
      [](const ZipEntry& entry, std::string_view key) { return entry.name < key; });
  return found != entries_.end() && found->name == name ? &*found : nullptr;
}

Bytes ZipArchive::read(ZipEntry& entry) const {
  if (!entry.is_checked) {
    const auto* data = reinterpret_cast<const Bytef*>(entry.data.data());
    const auto crc =
        static_cast<uint32_t>(crc32_z(crc32_z(0, nullptr, 0), data, entry.data.size()));
    if (crc != entry.crc) {
      fail(fmt::format("zip entry {} is damaged: its CRC-32 is {:08x}, not {:08x}",
                       in_quotes(entry.name), crc, entry.crc));
    }
    entry.is_checked = true;
  }
  return entry.data;
}

}  // namespace adjoin::io
