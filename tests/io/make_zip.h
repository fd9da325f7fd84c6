#pragma once

// Zip files in memory, laid out as torch.save does: sound by default, with every lie a hostile file
// could tell as a field.

#include <zlib.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/make_safetensors.h"

namespace adjoin::io {

/// The number as its little-endian bytes.
template <class T>
std::string number(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

struct ZipMember {
  std::string name;
  std::string data;
  // What the headers say, when it is not the truth.
  std::optional<std::string> local_name = {};
  std::optional<uint32_t> local_size = {};
  std::optional<uint32_t> size = {};
  std::optional<uint32_t> crc = {};
  std::optional<uint32_t> header_at = {};
  uint16_t method = 0;
  uint16_t flags = 0x0808;  // sizes follow the data, names are UTF-8
  std::string extra = {};   // of the directory record
};

struct ZipOptions {
  bool has_end64 = true;  // torch.save always writes one
  uint16_t disk = 0;
  std::optional<uint64_t> count = {};
  std::optional<uint64_t> directory_size = {};
  std::optional<uint64_t> directory_at = {};
  std::string comment = {};
};

inline uint32_t crc_of(const std::string& data) {
  return static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size())));
}

inline std::string zip_local(const ZipMember& member) {
  const std::string name = member.local_name.value_or(member.name);
  const bool follow = (member.flags & 8U) != 0;
  const auto size =
      member.local_size.value_or(follow ? 0 : static_cast<uint32_t>(member.data.size()));
  const uint32_t crc = follow ? 0 : member.crc.value_or(crc_of(member.data));
  std::string bytes = "PK\x03\x04" + number<uint16_t>(0) + number(member.flags) +
                      number(member.method) + number<uint32_t>(0) + number(crc) + number(size) +
                      number(size) + number(static_cast<uint16_t>(name.size())) +
                      number<uint16_t>(0) + name + member.data;
  if (follow) {
    const auto true_size = static_cast<uint32_t>(member.data.size());
    bytes += "PK\x07\x08" + number(crc_of(member.data)) + number(true_size) + number(true_size);
  }
  return bytes;
}

inline std::string zip_record(const ZipMember& member, size_t header_at) {
  const uint32_t size = member.size.value_or(static_cast<uint32_t>(member.data.size()));
  return "PK\x01\x02" + number<uint32_t>(0) + number(member.flags) + number(member.method) +
         number<uint32_t>(0) + number(member.crc.value_or(crc_of(member.data))) + number(size) +
         number(size) + number(static_cast<uint16_t>(member.name.size())) +
         number(static_cast<uint16_t>(member.extra.size())) + number<uint16_t>(0) +
         number<uint16_t>(0) + number<uint16_t>(0) + number<uint32_t>(0) +
         number(member.header_at.value_or(static_cast<uint32_t>(header_at))) + member.name +
         member.extra;
}

inline std::string make_zip(const std::vector<ZipMember>& members, const ZipOptions& options = {}) {
  std::string file;
  std::string directory;
  for (const ZipMember& member : members) {
    directory += zip_record(member, file.size());
    file += zip_local(member);
  }
  const uint64_t count = options.count.value_or(members.size());
  const uint64_t size = options.directory_size.value_or(directory.size());
  const uint64_t at = options.directory_at.value_or(file.size());
  file += directory;
  if (options.has_end64) {
    const uint64_t end64_at = file.size();
    file += "PK\x06\x06" + number<uint64_t>(44) + number<uint32_t>(0) +
            number<uint32_t>(options.disk) + number<uint32_t>(options.disk) + number(count) +
            number(count) + number(size) + number(at);
    file += "PK\x06\x07" + number<uint32_t>(options.disk) + number(end64_at) + number<uint32_t>(1);
  }
  const auto count16 = static_cast<uint16_t>(count);
  return file + "PK\x05\x06" + number(options.disk) + number(options.disk) + number(count16) +
         number(count16) + number(static_cast<uint32_t>(size)) + number(static_cast<uint32_t>(at)) +
         number(static_cast<uint16_t>(options.comment.size())) + options.comment;
}

}  // namespace adjoin::io
