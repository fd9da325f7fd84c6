#include "adjoin/core/fields.h"

#include <cmath>

namespace adjoin {

std::string describe(const Json& value) {
  constexpr size_t kMostShown = 40;
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kMostShown) text = text.substr(0, kMostShown) + "..";
  return text;
}

void throw_wrong_type(const std::string& path, std::string_view wanted, const Json& value) {
  throw Error(ErrorKind::kConfig,
              fmt::format("{}: is {}, must be {}", path, describe(value), wanted));
}

std::string range_text(Range range) {
  if (std::isinf(range.min) && std::isinf(range.max)) return "";
  if (std::isinf(range.max)) return fmt::format("at least {}", range.min);
  if (std::isinf(range.min)) return fmt::format("at most {}", range.max);
  return fmt::format("{} to {}", range.min, range.max);
}

void check_range(const std::string& path, double value, Range range) {
  if (value >= range.min && value <= range.max) return;
  throw Error(ErrorKind::kConfig,
              fmt::format("{}: is {}, must be {}", path, value, range_text(range)));
}

void from_json(const Json& json, bool& value, const std::string& path, Range) {
  if (!json.is_boolean()) throw_wrong_type(path, "true or false", json);
  value = json.get<bool>();
}

void from_json(const Json& json, int64_t& value, const std::string& path, Range range) {
  const bool is_huge = json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX;
  if (!json.is_number_integer() || is_huge) throw_wrong_type(path, "an integer", json);
  check_range(path, static_cast<double>(json.get<int64_t>()), range);
  value = json.get<int64_t>();
}

void from_json(const Json& json, double& value, const std::string& path, Range range) {
  if (!json.is_number() || !std::isfinite(json.get<double>())) {
    throw_wrong_type(path, "a number", json);
  }
  check_range(path, json.get<double>(), range);
  value = json.get<double>();
}

void from_json(const Json& json, std::string& value, const std::string& path, Range) {
  if (!json.is_string()) throw_wrong_type(path, "a string", json);
  value = json.get<std::string>();
}

}  // namespace adjoin
