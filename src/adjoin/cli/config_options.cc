#include "adjoin/cli/config_options.h"

#include <algorithm>

#include "adjoin/cli/arguments.h"
#include "adjoin/cli/help_page.h"
#include "adjoin/core/suggest.h"
#include "adjoin/core/text.h"

namespace adjoin::cli {
namespace {

constexpr size_t kLongestWordList = 24;

std::string word_list(const FieldInfo& field) { return join(field.words, "|"); }

/// What stands for the value on the help page.
std::string placeholder(const FieldInfo& field) {
  const std::string one = [&]() -> std::string {
    switch (field.type) {
      case FieldType::kInteger: return "N";
      case FieldType::kNumber: return "X";
      case FieldType::kWord:
        return word_list(field).size() <= kLongestWordList ? word_list(field) : "WORD";
      case FieldType::kText:
      case FieldType::kFlag: break;
    }
    return "TEXT";
  }();
  return field.is_list ? one + ",.." : one;
}

/// "pull of weights to zero (default 0.05)".
std::string help_text(const FieldInfo& field, const std::vector<std::string>& other_names) {
  std::vector<std::string> facts;
  if (word_list(field).size() > kLongestWordList) facts.push_back(word_list(field));
  if (field.type == FieldType::kFlag) {
    facts.emplace_back(field.value == "true" ? "default on" : "default off");
  } else if (!field.value.empty()) {
    facts.push_back("default " + field.value);
  }
  if (!other_names.empty()) facts.push_back("also " + join(other_names));
  if (facts.empty()) return field.doc;
  return fmt::format("{}{}({})", field.doc, field.doc.empty() ? "" : " ", join(facts, "; "));
}

std::string as_flag(const std::string& name) {
  return name.size() == 1 ? "-" + name : flag_of(name);
}

}  // namespace

ConfigFlags::ConfigFlags(CLI::App& app, std::vector<FieldInfo> fields,
                         const ConfigFlagsOptions& options)
    : fields_(std::move(fields)) {
  for (const std::vector<std::string>& names : options.aliases) {
    std::vector<std::string>& row = aliases_.emplace_back();
    for (const std::string& name : names) row.push_back(name_of(name));
  }
  app.formatter(std::make_shared<HelpPage>());
  app.add_option("--config", files_, "a recipe: YAML with \"key: value\" lines; later ones win")
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_set_option(app, sets_, /*has_config=*/true);
  std::string heading = "Config";
  for (const FieldInfo& field : fields_) {
    for (const ConfigHeading& candidate : options.headings) {
      if (name_of(candidate.first_field) == field.name) heading = candidate.text;
    }
    const auto& hidden = options.without_flag;
    if (std::find(hidden.begin(), hidden.end(), field.name) != hidden.end()) {
      flags_.push_back(nullptr);
    } else {
      add_flag(app, field, heading);
    }
  }
}

void ConfigFlags::add_flag(CLI::App& app, const FieldInfo& field, const std::string& heading) {
  std::vector<std::string> others;
  for (const std::vector<std::string>& row : aliases_) {
    if (row.front() != field.name) continue;
    for (size_t i = 1; i < row.size(); ++i) others.push_back(as_flag(row[i]));
  }
  std::string names = flag_of(field.name);
  for (const std::string& other : others) names += "," + other;
  std::erase_if(others, [](const std::string& name) { return !name.starts_with("--"); });
  const std::string help = help_text(field, others);
  if (field.type == FieldType::kFlag && !field.is_list) {
    names += ",!--no-" + flag_of(field.name).substr(2);
    for (const std::string& other : others) names += ",!--no-" + other.substr(2);
    flags_.push_back(app.add_flag(names, help)
                         ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
                         ->group(heading));
    return;
  }
  // The text is kept as it is: CLI11 would take "[a,b]" for two values.
  const auto keep = [](const CLI::results_t&) { return true; };
  flags_.push_back(app.add_option(names, keep, help)
                       ->type_name(placeholder(field))
                       ->expected(1)
                       ->allow_extra_args(false)
                       ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
                       ->group(heading));
}

std::string ConfigFlags::canonical(const std::string& key) const {
  const std::string name = name_of(key);
  for (const std::vector<std::string>& row : aliases_) {
    if (std::find(row.begin(), row.end(), name) != row.end()) return row.front();
  }
  return name;
}

/// The file's object with every alias replaced by the name of its field.
Json ConfigFlags::recipe(const std::string& file) {
  const Json json = read_yaml_file(file);
  if (!json.is_object()) return json;
  Json result = Json::object();
  for (const auto& [key, value] : json.items()) {
    const std::string name = canonical(key);
    if (result.contains(name)) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("{}: keys {} and {} mean the same", file, in_quotes(key), name));
    }
    const bool is_known = std::any_of(fields_.begin(), fields_.end(),
                                      [&](const FieldInfo& field) { return field.name == name; });
    result[is_known ? name : key] = value;  // errors show keys as they stand in the file
    given_.insert(name);
  }
  return result;
}

/// NAME=TEXT of a --set argument.
std::pair<std::string, std::string> ConfigFlags::config_set(const std::string& set) const {
  const size_t equals = set.find('=');
  if (equals == std::string::npos) {
    throw Error(ErrorKind::kUsage, fmt::format("--set: {} must be KEY=VALUE", in_quotes(set)));
  }
  const std::string key = set.substr(0, equals);
  std::vector<std::string> names;
  names.reserve(fields_.size());
  for (const FieldInfo& field : fields_) names.push_back(field.name);
  const std::string name = canonical(key);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    throw Error(ErrorKind::kUsage, fmt::format("--set: unknown key {}{} (those of the model start "
                                               "with model.)",
                                               in_quotes(key), suggestion(name, names)));
  }
  return {name, set.substr(equals + 1)};
}

/// Fields and their texts, in the order they take effect.
std::vector<std::pair<std::string, std::string>> ConfigFlags::values() {
  std::vector<std::pair<std::string, std::string>> result;
  for (const std::string& set : sets_) {
    if (!set.starts_with(kModelSection)) result.push_back(config_set(set));
  }
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (flags_[i] == nullptr || flags_[i]->count() == 0) continue;
    const std::string& text = flags_[i]->results().back();
    if (text.starts_with("--")) {  // CLI11 takes whatever comes next for the value
      throw Error(ErrorKind::kUsage, fmt::format("{}: its value is missing; the flag {} follows",
                                                 flag_of(fields_[i].name), text));
    }
    result.emplace_back(fields_[i].name, text);
  }
  for (const auto& [name, text] : result) given_.insert(name);
  return result;
}

bool ConfigFlags::is_flag(const std::string& name) const {
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].name == name) return flags_[i] != nullptr && flags_[i]->count() > 0;
  }
  return false;
}

std::vector<std::string> ConfigFlags::model_sets() const {
  std::vector<std::string> result;
  std::copy_if(sets_.begin(), sets_.end(), std::back_inserter(result),
               [](const std::string& set) { return set.starts_with(kModelSection); });
  return result;
}

}  // namespace adjoin::cli
