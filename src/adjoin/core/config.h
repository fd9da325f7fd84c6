#pragma once

// What a command needs of its config: a plain struct with defaults and one `fields` list
// (core/fields.h). Recipes are merged into it, flags set single fields by their text, and help and
// docs come from the same list. Members of a nested struct are listed flat by calling its `fields`.
//
//   TrainConfig config;                                         // the defaults
//   merge_json(read_yaml_file("deit.yaml"), config, "deit.yaml");
//   set_from_text(config, "weight_decay", "0.05");
//   write_file("config.yaml", config_yaml(config));
//
// A field is a bool, int64_t, double, string, enum with kEnumNames, or a vector of these but bool.

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "adjoin/core/fields.h"
#include "adjoin/core/json.h"
#include "adjoin/core/yaml.h"

namespace adjoin {

enum class FieldType { kFlag, kInteger, kNumber, kText, kWord };

/// A field as help and docs show it.
struct FieldInfo {
  std::string name;                   ///< as in a recipe: weight_decay
  FieldType type = FieldType::kText;  ///< of an item, if it is a list
  bool is_list = false;
  std::vector<std::string> words;  ///< that a kWord can be
  std::string value;               ///< the default, as set_from_text reads it
  Range range;
  std::string doc;

  /// "flag", "whole number", "number", "text", "a|b|c", "list of numbers".
  std::string type_text() const;
};

/// weight_decay -> --weight-decay.
std::string flag_of(std::string_view name);

/// weight-decay -> weight_decay.
std::string name_of(std::string_view key);

/// The value that the text of a flag means for such a field; Error(kConfig) opens with `path`.
Json json_from_text(const FieldInfo& field, const std::string& text, const std::string& path);

/// A value as a flag would be given it: "0.08,1".
std::string text_of(const Json& value);

template <class T>
struct FieldTypeOf {
  static_assert(std::is_enum_v<T>, "a config has no fields of this type");
  static constexpr FieldType kType = FieldType::kWord;
  static constexpr bool kIsList = false;
};
template <>
struct FieldTypeOf<bool> {
  static constexpr FieldType kType = FieldType::kFlag;
  static constexpr bool kIsList = false;
};
template <>
struct FieldTypeOf<int64_t> {
  static constexpr FieldType kType = FieldType::kInteger;
  static constexpr bool kIsList = false;
};
template <>
struct FieldTypeOf<double> {
  static constexpr FieldType kType = FieldType::kNumber;
  static constexpr bool kIsList = false;
};
template <>
struct FieldTypeOf<std::string> {
  static constexpr FieldType kType = FieldType::kText;
  static constexpr bool kIsList = false;
};
template <class T>
struct FieldTypeOf<std::vector<T>> {
  static_assert(!std::is_same_v<T, bool> && !FieldTypeOf<T>::kIsList, "no list of this type");
  static constexpr FieldType kType = FieldTypeOf<T>::kType;
  static constexpr bool kIsList = true;
};

template <class T>
std::vector<std::string> words_of() {
  std::vector<std::string> words;
  if constexpr (std::is_enum_v<T>) {
    for (const auto& [name, value] : kEnumNames<T>) words.emplace_back(name);
  } else if constexpr (FieldTypeOf<T>::kIsList) {
    return words_of<typename T::value_type>();
  }
  return words;
}

/// A visitor that calls `act(info, member)` for each field.
template <class Act>
class FieldVisitor {
 public:
  explicit FieldVisitor(Act act) : act_(std::move(act)) {}

  template <class T>
  void operator()(std::string_view name, T& member, Range range = {}, std::string_view doc = {}) {
    using Type = FieldTypeOf<T>;
    const FieldInfo info{std::string(name), Type::kType, Type::kIsList, words_of<T>(), "", range,
                         std::string(doc)};
    act_(info, member);
  }

 private:
  Act act_;
};

template <class T, class Act>
void for_each_field(T& config, Act act) {
  FieldVisitor<Act> visitor(std::move(act));
  fields(visitor, config);
}

/// Every field with its value as the default, in the order of the list.
template <class T>
std::vector<FieldInfo> describe_fields(const T& config) {
  std::vector<FieldInfo> infos;
  T copy = config;  // `fields` lists members for writing too
  for_each_field(copy, [&](FieldInfo info, auto& member) {
    info.value = text_of(to_json(member));
    infos.push_back(std::move(info));
  });
  return infos;
}

/// The object with every key spelt as a field is. Error(kConfig) unless it is an object (or null:
/// an empty file), when a key names no field, or two name the same.
Json checked_keys(const Json& object, const std::vector<FieldInfo>& known,
                  const std::string& origin);

/// Sets the fields that the object names; `-` in a key is `_`. Error(kConfig) for unknown keys and
/// wrong values, with `origin` (a file name); `config` is then as it was.
template <class T>
void merge_json(const Json& object, T& config, const std::string& origin) {
  const Json checked = checked_keys(object, describe_fields(config), origin);
  T merged = config;
  for_each_field(merged, [&](const FieldInfo& info, auto& member) {
    const auto found = checked.find(info.name);
    if (found != checked.end()) {
      from_json(*found, member, origin + ": " + info.name, info.range);
    }
  });
  config = std::move(merged);
}

[[noreturn]] void throw_unknown_flag(const std::string& key, const std::vector<std::string>& names);

/// Sets one field by the text of its flag; `-` in the key is `_`. Error(kConfig) names the flag,
/// and `config` is then as it was.
template <class T>
void set_from_text(T& config, const std::string& key, const std::string& text) {
  const std::string name = name_of(key);
  const std::string flag = flag_of(key);
  std::vector<std::string> names;
  bool is_found = false;
  for_each_field(config, [&](const FieldInfo& info, auto& member) {
    names.push_back(info.name);
    if (info.name != name) return;
    is_found = true;
    auto value = member;
    from_json(json_from_text(info, text, flag), value, flag, info.range);
    member = std::move(value);
  });
  if (!is_found) throw_unknown_flag(key, names);
}

/// Every field with its value, in the order of the list: what a run folder keeps.
template <class T>
std::string config_yaml(const T& config) {
  return to_yaml(to_json(config));
}

}  // namespace adjoin
