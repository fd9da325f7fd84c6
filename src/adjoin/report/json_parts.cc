#include "adjoin/report/json_parts.h"

#include <cmath>

namespace adjoin::report {
namespace {

const Json& at(const Json& object, std::string_view key) {
  static const Json nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

}  // namespace

std::optional<double> number_of(const Json& value) {
  if (!value.is_number() || !std::isfinite(value.get<double>())) return std::nullopt;
  return value.get<double>();
}

std::optional<double> number_at(const Json& object, std::string_view key) {
  return number_of(at(object, key));
}

std::string text_at(const Json& object, std::string_view key) {
  const Json& found = at(object, key);
  return found.is_string() ? found.get<std::string>() : "";
}

std::vector<std::string> texts_at(const Json& object, std::string_view key) {
  std::vector<std::string> texts;
  for (const Json& text : list_at(object, key)) {
    if (text.is_string()) texts.push_back(text.get<std::string>());
  }
  return texts;
}

const Json& list_at(const Json& object, std::string_view key) {
  static const Json empty = Json::array();
  const Json& found = at(object, key);
  return found.is_array() ? found : empty;
}

std::vector<double> numbers_of(const Json& list) {
  std::vector<double> numbers;
  if (!list.is_array()) return numbers;
  for (const Json& value : list) numbers.push_back(number_of(value).value_or(NAN));
  return numbers;
}

std::vector<double> numbers_at(const Json& object, std::string_view key) {
  return numbers_of(list_at(object, key));
}

Spread::Spread(const std::vector<double>& values) : mean(NAN), least(NAN), most(NAN) {
  double sum = 0, count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++count;
    least = std::fmin(least, value);  // the other one where one is NaN
    most = std::fmax(most, value);
  }
  if (count > 0) mean = sum / count;
}

const Json& object_at(const Json& object, std::string_view key) {
  static const Json nothing;
  const Json& found = at(object, key);
  return found.is_object() ? found : nothing;
}

std::optional<bool> truth_at(const Json& object, std::string_view key) {
  const Json& found = at(object, key);
  return found.is_boolean() ? std::optional(found.get<bool>()) : std::nullopt;
}

}  // namespace adjoin::report
