#include "adjoin/core/json.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "adjoin/core/error.h"
#include "adjoin/core/place.h"

namespace adjoin {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxKeys =
    10000;  // of one object: keys that keep their order are searched one by one

}  // namespace

Json parse_json(std::string_view text, std::string_view origin) {
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxDepth) {
      throw Error(ErrorKind::kData, fmt::format("{}: nests deeper than {}", origin, kMaxDepth));
    }
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) {
        throw Error(ErrorKind::kData, fmt::format("{}: key \"{}\" stands twice", origin, key));
      }
      if (keys.back().size() > kMaxKeys) {
        throw Error(ErrorKind::kData,
                    fmt::format("{}: an object has more than {} keys", origin, kMaxKeys));
      }
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), check);
  } catch (const Json::parse_error& e) {
    throw Error(ErrorKind::kData, fmt::format("{}: not JSON (byte {})", origin, e.byte));
  } catch (const Json::out_of_range&) {
    throw Error(ErrorKind::kData, fmt::format("{}: holds a number too large to read", origin));
  }
}

std::string read_text_file(const std::string& path, size_t max_bytes) {
  const Place place = place_at(path);
  if (place == Place::kFolder) throw Error(ErrorKind::kIo, path + ": is a folder, not a file");
  if (place == Place::kOther) {
    throw Error(ErrorKind::kIo, path + ": is a device or a pipe, not a regular file");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorKind::kIo, fmt::format("{}: {}", path, std::strerror(errno)));
  std::string text;
  char buffer[1 << 16];
  while (file.read(buffer, sizeof buffer) || file.gcount() > 0) {
    text.append(buffer, static_cast<size_t>(file.gcount()));
    if (text.size() > max_bytes) {
      throw Error(ErrorKind::kData, fmt::format("{}: larger than {} bytes", path, max_bytes));
    }
  }
  return text;
}

Json read_json_file(const std::string& path, size_t max_bytes) {
  return parse_json(read_text_file(path, max_bytes), path);
}

}  // namespace adjoin
