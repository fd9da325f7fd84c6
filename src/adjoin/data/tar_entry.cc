#include "adjoin/data/tar_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "adjoin/core/error.h"
#include "adjoin/core/text.h"
#include "adjoin/data/gzip.h"

namespace adjoin::data {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint64_t kBlock = 512;
constexpr uint64_t kMostName = 4096;  // PATH_MAX
constexpr uint64_t kMostPax = uint64_t{1} << 20;

struct Field {
  size_t at;
  size_t size;
};
constexpr Field kName = {0, 100};
constexpr Field kSize = {124, 12};
constexpr Field kChecksum = {148, 8};
constexpr size_t kType = 156;
constexpr Field kMagic = {257, 6};
constexpr Field kPrefix = {345, 155};

std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Up to the first NUL.
std::string_view text_of(Bytes block, Field field) {
  const std::string_view text = as_text(block.subspan(field.at, field.size));
  return text.substr(0, text.find('\0'));
}

bool is_zero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

/// Digits of an octal number between spaces; nothing when it is none.
std::optional<uint64_t> octal(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  text = text.substr(begin, text.find(' ', begin) - begin);
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  const bool is_whole = code == std::errc() && end == text.data() + text.size();
  return is_whole ? std::optional(value) : std::nullopt;
}

/// A size in octal, or where that is too short in GNU's base 256.
std::optional<uint64_t> size_in(Bytes block) {
  const Bytes field = block.subspan(kSize.at, kSize.size);
  if (field[0] != std::byte{0x80}) return octal(text_of(block, kSize));
  if (!is_zero(field.subspan(1, 3))) return std::nullopt;
  uint64_t value = 0;
  for (const std::byte digit : field.subspan(4)) value = value << 8 | static_cast<uint64_t>(digit);
  return value;
}

/// The sum of the bytes with spaces for the checksum itself.
uint64_t checksum_of(Bytes block) {
  uint64_t sum = kChecksum.size * ' ';
  for (size_t i = 0; i < kBlock; ++i) {
    const bool is_own = i >= kChecksum.at && i < kChecksum.at + kChecksum.size;
    if (!is_own) sum += static_cast<uint64_t>(block[i]);
  }
  return sum;
}

/// Reads the headers of one entry, those that extend it first.
class EntryReader {
 public:
  EntryReader(const io::FileBytes& file, uint64_t at) : file_(file), at_(at) {}

  std::optional<TarEntry> read() {
    for (;;) {
      const Bytes block = block_at(at_);
      if (is_zero(block)) {
        check_end();
        return std::nullopt;
      }
      check_header(block);
      const char type = static_cast<char>(block[kType]);
      const Bytes data = data_after_header(block, type);
      switch (type) {
        case 'L': read_long_name(data); break;
        case 'x': read_pax(data); break;
        case 'g':
        case 'K': check_global(type, data); break;
        default: return make_entry(block, type, data);
      }
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kData, fmt::format("{}: {}", file_.origin, what));
  }

  Bytes block_at(uint64_t at) const {
    const uint64_t size = file_.bytes.size();
    if (at > size || size - at < kBlock) {
      if (at == 0) fail("is no tar: it has less than 512 bytes");
      fail(fmt::format("is a tar that is cut short: it ends at byte {} without an end mark", size));
    }
    return file_.bytes.subspan(at, kBlock);
  }

  /// Two blocks of zeros, then zeros to the end: behind them another tar could hide.
  void check_end() const {
    if (path_ || size_) fail("is a broken tar: its last header extends no entry");
    block_at(at_ + kBlock);
    const Bytes rest = file_.bytes.subspan(at_);
    const auto other =
        std::find_if(rest.begin(), rest.end(), [](std::byte b) { return b != std::byte{0}; });
    if (other != rest.end()) {
      fail(
          fmt::format("something follows the end mark of the tar, at byte {}; if tars were joined, "
                      "join them with tar --concatenate",
                      at_ + static_cast<uint64_t>(other - rest.begin())));
    }
  }

  void check_header(Bytes block) const {
    if (at_ == 0 && looks_like_gzip(file_.bytes)) {
      fail("is compressed; unpack it with gunzip, because images are read where they lie");
    }
    const auto checksum = octal(text_of(block, kChecksum));
    if (!checksum || *checksum != checksum_of(block)) {
      fail(fmt::format("is {} tar: the checksum of the header at byte {} is wrong",
                       at_ == 0 ? "no" : "a broken", at_));
    }
  }

  /// Leaves `at_` behind the data.
  Bytes data_after_header(Bytes block, char type) {
    // An extension says how large the file is, not how large the headers between are.
    const bool is_extension = type == 'L' || type == 'K' || type == 'x' || type == 'g';
    const bool has_data =
        type != '1' && type != '2' && type != '3' && type != '4' && type != '5' && type != '6';
    const auto written = size_in(block);
    if (!written) fail(fmt::format("is a broken tar: the size at byte {} is no number", at_));
    const uint64_t size = !has_data ? 0 : !is_extension && size_ ? *size_ : *written;
    const uint64_t begin = at_ + kBlock;
    const uint64_t rest = file_.bytes.size() - begin;
    const uint64_t padding = (kBlock - size % kBlock) % kBlock;
    if (size > rest || padding > rest - size) {
      fail(
          fmt::format("is a broken tar or cut short: {} of {} bytes at byte {} reaches beyond its "
                      "end",
                      in_quotes(text_of(block, kName)), size, at_));
    }
    at_ = begin + size + padding;
    return file_.bytes.subspan(begin, size);
  }

  void set_path(std::string_view path) {
    if (path_) fail(fmt::format("is a broken tar: the entry before byte {} has two names", at_));
    path = path.substr(0, path.find('\0'));
    if (path.size() > kMostName) {
      fail(fmt::format("a name of {} bytes is too long, must be up to {}", path.size(), kMostName));
    }
    path_ = path;
  }

  void read_long_name(Bytes data) {
    if (data.size() > kMostName + 1) {
      fail(fmt::format("a name of {} bytes is too long, must be up to {}", data.size(), kMostName));
    }
    set_path(as_text(data));
  }

  /// Calls `use` with key and value of each record, "length key=value\n".
  template <class Use>
  void for_each_record(Bytes data, Use use) const {
    if (data.size() > kMostPax)
      fail(fmt::format("a pax header of {} bytes is too long", data.size()));
    for (std::string_view rest = as_text(data); !rest.empty();) {
      uint64_t length = 0;
      const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
      const auto digits = static_cast<uint64_t>(end - rest.data());
      const bool is_sound = code == std::errc() && length > digits && length <= rest.size() &&
                            rest[digits] == ' ' && rest[length - 1] == '\n';
      if (!is_sound) fail(fmt::format("is a broken tar: the pax header before byte {}", at_));
      const std::string_view record = rest.substr(digits + 1, length - digits - 2);
      const size_t equals = record.find('=');
      if (equals == std::string_view::npos) {
        fail(fmt::format("is a broken tar: the pax header before byte {} lacks a '='", at_));
      }
      use(record.substr(0, equals), record.substr(equals + 1));
      rest.remove_prefix(length);
    }
  }

  void read_pax(Bytes data) {
    for_each_record(data, [&](std::string_view key, std::string_view value) {
      if (key.starts_with("GNU.sparse.")) refuse_sparse();
      if (key == "path") set_path(value);
      if (key != "size") return;
      uint64_t size = 0;
      const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), size);
      if (code != std::errc() || end != value.data() + value.size() || size_) {
        fail(fmt::format("is a broken tar: the pax size before byte {}", at_));
      }
      size_ = size;
    });
  }

  /// A header for all entries to come may say what we do not read (time, owner), but no more: an
  /// entry must be readable by itself.
  void check_global(char type, Bytes data) const {
    if (type != 'g') return;
    for_each_record(data, [&](std::string_view key, std::string_view) {
      if (key == "path" || key == "size" || key.starts_with("GNU.sparse.")) {
        fail(
            fmt::format("a pax header for all entries sets {}, which only one for a single entry "
                        "may",
                        key));
      }
    });
  }

  [[noreturn]] void refuse_sparse() const {
    fail(fmt::format("holds a sparse file before byte {}; write the tar without --sparse", at_));
  }

  TarEntry make_entry(Bytes block, char type, Bytes data) const {
    TarEntry entry;
    entry.data = data;
    entry.next = at_;
    entry.path = path_.value_or(std::string(text_of(block, kName)));
    const std::string_view magic = as_text(block.subspan(kMagic.at, kMagic.size));
    const std::string_view prefix = text_of(block, kPrefix);
    const bool is_ustar = magic == std::string_view("ustar\0", 6);
    if (!path_ && is_ustar && !prefix.empty())
      entry.path = fmt::format("{}/{}", prefix, entry.path);
    switch (type) {
      case '\0':  // before ustar a folder was a file with a slash at its end
        entry.kind = entry.path.ends_with('/') ? TarKind::kFolder : TarKind::kFile;
        break;
      case '0':
      case '7': entry.kind = TarKind::kFile; break;
      case '1':
      case '2': entry.kind = TarKind::kLink; break;
      case '5': entry.kind = TarKind::kFolder; break;
      case '3':
      case '4':
      case '6':
      case 'V': entry.kind = TarKind::kOther; break;
      case 'S': refuse_sparse();
      default:
        fail(fmt::format("{} is an entry of the unknown type {}", in_quotes(entry.path),
                         in_quotes(std::string_view(&type, 1))));
    }
    return entry;
  }

  const io::FileBytes& file_;
  uint64_t at_;
  std::optional<std::string> path_;  // of the headers that extend the entry
  std::optional<uint64_t> size_;
};

}  // namespace

std::optional<TarEntry> read_tar_entry(const io::FileBytes& file, uint64_t at) {
  return EntryReader(file, at).read();
}

}  // namespace adjoin::data
