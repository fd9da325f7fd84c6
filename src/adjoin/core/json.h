#pragma once

// JSON as the project writes it: keys keep the order they were given in.

#include <nlohmann/json.hpp>

namespace adjoin {

using Json = nlohmann::ordered_json;

/// The whole text as one JSON value. Throws Error(kData) saying where it is broken, when it nests
/// deeper or has longer objects than any file of ours, or when an object names a key twice.
/// `origin` (a file name) opens the message.
Json parse_json(std::string_view text, std::string_view origin);

/// The text of a regular file of at most `max_bytes`; Error(kIo) when it cannot be read.
std::string read_text_file(const std::string& path, size_t max_bytes);

/// parse_json of a file of at most `max_bytes`; Error(kIo) when it cannot be read.
Json read_json_file(const std::string& path, size_t max_bytes = size_t{64} << 20);

}  // namespace adjoin
