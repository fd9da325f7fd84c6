#include "adjoin/core/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "adjoin/core/error.h"
#include "adjoin/core/suggest.h"
#include "adjoin/core/text.h"

namespace adjoin {
namespace {

Json flag_from_text(const std::string& text, const std::string& path) {
  constexpr std::array<std::string_view, 4> kYes = {"true", "on", "yes", "1"};
  constexpr std::array<std::string_view, 4> kNo = {"false", "off", "no", "0"};
  if (std::find(kYes.begin(), kYes.end(), text) != kYes.end()) return true;
  if (std::find(kNo.begin(), kNo.end(), text) != kNo.end()) return false;
  throw_wrong_type(path, "true or false", text);
}

Json number_from_text(const std::string& text, const std::string& path, bool is_integer) {
  Json value;
  try {
    value = yaml_scalar(text);
  } catch (const Error& e) {
    throw Error(ErrorKind::kConfig, fmt::format("{}: {}", path, e.what()));
  }
  const bool is_right = is_integer ? value.is_number_integer() : value.is_number();
  if (!is_right) throw_wrong_type(path, is_integer ? "a whole number" : "a number", text);
  return value;
}

Json item_from_text(const FieldInfo& field, const std::string& text, const std::string& path) {
  switch (field.type) {
    case FieldType::kFlag: return flag_from_text(text, path);
    case FieldType::kInteger: return number_from_text(text, path, true);
    case FieldType::kNumber: return number_from_text(text, path, false);
    case FieldType::kText:
    case FieldType::kWord: break;
  }
  return text;
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

Json list_from_text(const FieldInfo& field, std::string text, const std::string& path) {
  text = trimmed(text);
  if (text.starts_with('[') && text.ends_with(']')) text = trimmed(text.substr(1, text.size() - 2));
  Json list = Json::array();
  if (text.empty()) return list;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string item = trimmed(text.substr(at, comma - at));
    if (item.empty()) {
      throw Error(ErrorKind::kConfig, fmt::format("{}: {} has an empty item between its commas",
                                                  path, in_quotes(text)));
    }
    list.push_back(item_from_text(field, item, path));
    at = comma + 1;
  }
  return list;
}

}  // namespace

std::string FieldInfo::type_text() const {
  const auto [one, many] = [&]() -> std::pair<std::string, std::string> {
    switch (type) {
      case FieldType::kFlag: return {"flag", "flags"};
      case FieldType::kInteger: return {"whole number", "whole numbers"};
      case FieldType::kNumber: return {"number", "numbers"};
      case FieldType::kText: return {"text", "texts"};
      case FieldType::kWord: break;
    }
    return {join(words, "|"), join(words, "|")};
  }();
  return is_list ? "list of " + many : one;
}

std::string flag_of(std::string_view name) {
  std::string flag = "--" + std::string(name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string name_of(std::string_view key) {
  std::string name(key);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

Json json_from_text(const FieldInfo& field, const std::string& text, const std::string& path) {
  return field.is_list ? list_from_text(field, text, path) : item_from_text(field, text, path);
}

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  if (!value.is_array()) return value.dump();
  std::vector<std::string> items;
  items.reserve(value.size());
  for (const Json& item : value) items.push_back(text_of(item));
  return join(items, ",");
}

Json checked_keys(const Json& object, const std::vector<FieldInfo>& known,
                  const std::string& origin) {
  if (object.is_null()) return Json::object();
  if (!object.is_object()) throw_wrong_type(origin, "a list of \"key: value\" lines", object);
  std::vector<std::string> names;
  names.reserve(known.size());
  for (const FieldInfo& info : known) names.push_back(info.name);
  Json checked = Json::object();
  for (const auto& [key, value] : object.items()) {
    const std::string name = name_of(key);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw Error(ErrorKind::kConfig, fmt::format("{}: unknown key {}{}", origin, in_quotes(key),
                                                  suggestion(name, names)));
    }
    if (checked.contains(name)) {
      throw Error(ErrorKind::kConfig, fmt::format("{}: key {} stands twice", origin, name));
    }
    checked[name] = value;
  }
  return checked;
}

void throw_unknown_flag(const std::string& key, const std::vector<std::string>& names) {
  std::vector<std::string> flags;
  flags.reserve(names.size());
  std::transform(names.begin(), names.end(), std::back_inserter(flags),
                 [](const std::string& name) { return flag_of(name); });
  const std::string flag = flag_of(key);
  throw Error(ErrorKind::kConfig, fmt::format("unknown flag {}{}", flag, suggestion(flag, flags)));
}

}  // namespace adjoin
