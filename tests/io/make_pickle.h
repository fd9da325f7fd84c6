#pragma once

// Pickles and checkpoints in memory, opcode by opcode, as torch.save writes them.

#include <cstdint>
#include <string>
#include <vector>

#include "io/make_zip.h"

namespace adjoin::io::pickled {

inline std::string text(const std::string& value) {
  return "X" + number(static_cast<uint32_t>(value.size())) + value;
}

/// Of at most 8 bytes.
inline std::string integer(int64_t value) { return "\x8a\x08" + number(value); }

inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}

inline std::string tuple(const std::vector<std::string>& items) {
  std::string result = "(";
  for (const std::string& item : items) result += item;
  return result + "t";
}

/// Keys and values in turn.
inline std::string dict(const std::vector<std::string>& items) {
  std::string result = "}(";
  for (const std::string& item : items) result += item;
  return result + "u";
}

inline std::string call(const std::string& function, const std::string& arguments) {
  return function + arguments + "R";
}

inline std::string integers(const std::vector<int64_t>& values) {
  std::vector<std::string> items;
  for (const int64_t value : values) items.push_back(integer(value));
  return tuple(items);
}

struct Storage {
  std::string type = "FloatStorage";
  std::string key = "0";
  int64_t numel = 6;
  std::string view = {};  // a sixth part, as the legacy format has
  std::string module = "torch";
};

inline std::string storage(const Storage& s) {
  std::string id = "(" + text("storage") + global(s.module, s.type) + text(s.key) + text("cpu") +
                   integer(s.numel) + s.view + "t";
  return id + "Q";
}

struct Tensor {
  Storage in = {};
  int64_t offset = 0;
  std::vector<int64_t> shape = {2, 3};
  std::vector<int64_t> strides = {3, 1};
};

inline std::string tensor(const Tensor& t = {}) {
  return call(global("torch._utils", "_rebuild_tensor_v2"),
              tuple({storage(t.in), integer(t.offset), integers(t.shape), integers(t.strides),
                     "\x89", call(global("collections", "OrderedDict"), ")")}));
}

/// PROTO 2, the value, STOP.
inline std::string whole(const std::string& value) { return "\x80\x02" + value + "."; }

/// 0, 1, 2, ..
inline std::string floats(size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += number(static_cast<float>(i));
  return bytes;
}

/// The zip of torch.save around a value, with six floats in storage "0".
inline std::vector<ZipMember> members(const std::string& value) {
  return {{"archive/data.pkl", whole(value)},
          {"archive/data/0", floats(6)},
          {"archive/version", "3\n"}};
}

inline std::string zip(const std::string& value) { return make_zip(members(value)); }

struct Legacy {
  std::string magic = std::string("\x8a\x0a") + "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
  std::string protocol = integer(1001);
  std::string system = dict({text("little_endian"), "\x88"});
  std::string keys = "](" + text("0") + "e";
  std::string storages = number<int64_t>(6) + floats(6);
};

/// The stream that torch.save wrote before 1.6.
inline std::string legacy(const std::string& value, const Legacy& parts = {}) {
  return whole(parts.magic) + whole(parts.protocol) + whole(parts.system) + whole(value) +
         whole(parts.keys) + parts.storages;
}

}  // namespace adjoin::io::pickled
