#pragma once

// YAML as recipes and resolved configs are written in. Plain scalars mean what the core schema of
// YAML 1.2 says: true and false alone are booleans ("on" and "yes" are text), 1e-3 is a number.
// What we write, readers of YAML 1.1 understand the same way.

#include <string>
#include <string_view>

#include "adjoin/core/json.h"

namespace adjoin {

/// Largest YAML text that is read.
inline constexpr size_t kMostYamlBytes = size_t{1} << 20;

/// The one document of the text, null when there is none; keys keep their order. Throws
/// Error(kConfig) that opens with `origin` (a file name) and the line, when it is broken, too
/// large, too deep, names a key twice, or holds tags or further documents. Aliases are copied out.
Json parse_yaml(std::string_view text, std::string_view origin);

/// Whether a path ends as YAML files do.
inline bool is_yaml_file(std::string_view path) {
  return path.ends_with(".yaml") || path.ends_with(".yml");
}

/// parse_yaml of a file; Error(kIo) when it cannot be read.
Json read_yaml_file(const std::string& path);

/// What a plain scalar means: null, a boolean, a number or, failing these, a string. Error(kConfig)
/// for numbers that no 64 bits hold.
Json yaml_scalar(std::string_view text);

/// Text that parse_yaml reads back to the same value, down to the last bit of a number. Short lists
/// of scalars stand on one line. Error(kConfig) for strings that are not UTF-8 and keys past 500
/// bytes, which YAML cannot hold.
std::string to_yaml(const Json& value);

}  // namespace adjoin
