#pragma once

// One list of fields per plain struct, from which reading, writing and checking follow.
//
//   template <class Visitor>
//   void fields(Visitor& visit, Split& split) {
//     visit("kernel", split.kernel, Range{1, 64}, "side of the square, pixels");
//     visit("stride", split.stride, Range{1, 64});
//   }
//
//   Json json = to_json(split);
//   from_json(json, split, "model.tokens.splits.0");   // strict: missing, extra and wrong are
//   errors
//
// A member can be a bool, int64_t, double, string, an enum with `kEnumNames`, another struct with
// `fields`, a vector of these, or an optional, which is null without a value. Errors are
// Error(kConfig) and open with the path.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "adjoin/core/error.h"
#include "adjoin/core/json.h"
#include "adjoin/core/suggest.h"

namespace adjoin {

/// The legal values of a number, both ends included.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};

/// Longest list a file may hold.
inline constexpr size_t kMostListItems = 65536;

template <class E>
struct EnumName {
  std::string_view name;
  E value;
};

/// Specialise beside an enum with an array of EnumName: the words it is written with.
template <class E>
inline constexpr auto kEnumNames = nullptr;

template <class E>
std::string_view enum_name(E value) {
  for (const auto& [name, candidate] : kEnumNames<E>) {
    if (candidate == value) return name;
  }
  throw Error(ErrorKind::kInternal, "an enumerator has no name");
}

/// What a value is, in a user's words: "an integer", "a string \"abc\"".
std::string describe(const Json& value);

[[noreturn]] void throw_wrong_type(const std::string& path, std::string_view wanted,
                                   const Json& value);

/// "at least 0", "at most 1", "0 to 1"; "" when every number is legal.
std::string range_text(Range range);
void check_range(const std::string& path, double value, Range range);

// ---- writing

inline Json to_json(bool value) { return value; }
inline Json to_json(int64_t value) { return value; }
inline Json to_json(double value) { return value; }
inline Json to_json(const std::string& value) { return value; }

template <class E>
requires std::is_enum_v<E> Json to_json(E value) { return std::string(enum_name(value)); }

template <class T>
Json to_json(const std::vector<T>& values);

template <class T>
Json to_json(const std::optional<T>& value);

template <class T>
requires std::is_class_v<T> Json to_json(const T& value);

class JsonWriter {
 public:
  template <class T>
  void operator()(std::string_view name, T& member, Range = {}, std::string_view /*doc*/ = {}) {
    json[std::string(name)] = to_json(member);
  }

  Json json = Json::object();
};

template <class T>
Json to_json(const std::vector<T>& values) {
  Json array = Json::array();
  for (const T& value : values) array.push_back(to_json(value));
  return array;
}

template <class T>
Json to_json(const std::optional<T>& value) {
  return value ? to_json(*value) : Json(nullptr);
}

template <class T>
requires std::is_class_v<T> Json to_json(const T& value) {
  JsonWriter writer;
  T copy = value;  // `fields` lists members for reading too, so it takes them by reference
  fields(writer, copy);
  return std::move(writer.json);
}

// ---- reading

void from_json(const Json& json, bool& value, const std::string& path, Range = {});
void from_json(const Json& json, int64_t& value, const std::string& path, Range range = {});
void from_json(const Json& json, double& value, const std::string& path, Range range = {});
void from_json(const Json& json, std::string& value, const std::string& path, Range = {});

template <class E>
requires std::is_enum_v<E>
void from_json(const Json& json, E& value, const std::string& path, Range = {}) {
  if (!json.is_string()) throw_wrong_type(path, "a word", json);
  std::vector<std::string> names;
  for (const auto& [name, candidate] : kEnumNames<E>) {
    if (json.get_ref<const std::string&>() == name) {
      value = candidate;
      return;
    }
    names.emplace_back(name);
  }
  throw Error(ErrorKind::kConfig,
              fmt::format("{}: unknown value {}; legal: {}", path, describe(json), join(names)));
}

template <class T>
void from_json(const Json& json, std::vector<T>& values, const std::string& path, Range range = {});

template <class T>
void from_json(const Json& json, std::optional<T>& value, const std::string& path,
               Range range = {});

template <class T>
requires std::is_class_v<T>
void from_json(const Json& json, T& value, const std::string& path, Range = {});

class JsonReader {
 public:
  JsonReader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json.is_object()) throw_wrong_type(path_, "an object", json);
  }

  template <class T>
  void operator()(std::string_view name, T& member, Range range = {},
                  std::string_view /*doc*/ = {}) {
    names_.emplace_back(name);
    const auto found = json_.find(std::string(name));
    if (found == json_.end()) {
      throw Error(ErrorKind::kConfig, fmt::format("{}: field \"{}\" is missing", path_, name));
    }
    from_json(*found, member, path_ + "." + std::string(name), range);
  }

  /// Every key must have been visited; Error names the first that was not and its likely meaning.
  void finish() const {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(names_.begin(), names_.end(), key) == names_.end()) {
        throw Error(ErrorKind::kConfig,
                    fmt::format("{}: unknown field \"{}\"{}", path_, key, suggestion(key, names_)));
      }
    }
  }

 private:
  const Json& json_;
  std::string path_;
  std::vector<std::string> names_;
};

template <class T>
void from_json(const Json& json, std::vector<T>& values, const std::string& path, Range range) {
  if (!json.is_array()) throw_wrong_type(path, "a list", json);
  if (json.size() > kMostListItems) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{}: {} items; at most {}", path, json.size(), kMostListItems));
  }
  values.assign(json.size(), T{});
  for (size_t i = 0; i < values.size(); ++i) {
    from_json(json[i], values[i], path + "." + std::to_string(i), range);
  }
}

template <class T>
void from_json(const Json& json, std::optional<T>& value, const std::string& path, Range range) {
  value.reset();
  if (!json.is_null()) from_json(json, value.emplace(), path, range);
}

template <class T>
requires std::is_class_v<T>
void from_json(const Json& json, T& value, const std::string& path, Range) {
  JsonReader reader(json, path);
  fields(reader, value);
  reader.finish();
}

}  // namespace adjoin
