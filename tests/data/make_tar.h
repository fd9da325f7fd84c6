#pragma once

// Tar files in memory: sound by default, with every lie a hostile file could tell as a field.

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace adjoin::data {

struct TarMember {
  std::string path;
  std::string data = {};
  char type = '0';
  // What the header says, when it is not the truth.
  std::optional<std::string> size = {};  // the 12 bytes of the field
  std::optional<uint32_t> checksum = {};
  std::string prefix = {};
  std::string magic = std::string(
      "ustar\0"
      "00",
      8);
};

/// Header and data, padded to whole blocks.
inline std::string make_tar_entry(const TarMember& member) {
  std::string header(512, '\0');
  const auto put = [&](size_t at, const std::string& text) {
    header.replace(at, text.size(), text);
  };
  put(0, member.path.substr(0, 100));
  put(100, fmt::format("{:07o}", 0644));
  put(124, member.size.value_or(fmt::format("{:011o}", member.data.size())));
  put(136, fmt::format("{:011o}", 0));
  put(148, "        ");
  header[156] = member.type;
  put(257, member.magic);
  put(345, member.prefix.substr(0, 155));
  uint32_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", member.checksum.value_or(sum)) + std::string("\0 ", 2));
  const size_t padding = (512 - member.data.size() % 512) % 512;
  return header + member.data + std::string(padding, '\0');
}

inline std::string tar_end() { return std::string(1024, '\0'); }

inline std::string make_tar(const std::vector<TarMember>& members) {
  std::string file;
  for (const TarMember& member : members) file += make_tar_entry(member);
  return file + tar_end();
}

/// "LENGTH key=value\n", the length counting itself.
inline std::string pax_record(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return std::to_string(length) + rest;
}

}  // namespace adjoin::data
