#pragma once

// A config (core/config.h) on the command line: one long flag per field, `--config FILE` for
// recipes and `--set KEY=VALUE`. Whatever their order there, flags win over --set, --set over
// recipes, later recipes over earlier ones, and all of them over the defaults.
//
//   ConfigFlags flags(app, TrainConfig{}, {.aliases = {{"data", "data-dir", "data-path"}}});
//   if (!parse(app, args)) return 0;
//   const TrainConfig config = flags.resolve(TrainConfig{});

#include <CLI/CLI.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "adjoin/core/config.h"

namespace adjoin::cli {

/// Opens a group of the help page at this field, up to the next heading.
struct ConfigHeading {
  std::string first_field;
  std::string text;
};

struct ConfigFlagsOptions {
  /// A field and its other names, as flags and as keys; one letter makes a short flag.
  std::vector<std::vector<std::string>> aliases = {};
  /// Fields that a recipe can have but the command line says otherwise.
  std::vector<std::string> without_flag = {};
  /// Fields before the first heading stand under "Config".
  std::vector<ConfigHeading> headings = {};
};

class ConfigFlags {
 public:
  /// The app must live as long as this object.
  template <class T>
  ConfigFlags(CLI::App& app, const T& defaults, const ConfigFlagsOptions& options = {})
      : ConfigFlags(app, describe_fields(defaults), options) {}
  ConfigFlags(CLI::App& app, std::vector<FieldInfo> fields, const ConfigFlagsOptions& options);
  ConfigFlags(const ConfigFlags&) = delete;
  ConfigFlags& operator=(const ConfigFlags&) = delete;

  /// The config that the parsed command line asks for. Error(kConfig) or Error(kUsage) says which
  /// file or flag is wrong.
  template <class T>
  T resolve(T config) {
    for (const std::string& file : files_) merge_json(recipe(file), config, file);
    for (const auto& [name, text] : values()) set_from_text(config, name, text);
    return config;
  }

  /// Whether the user, not a default, said what this field is; known after `resolve`.
  bool is_given(const std::string& name) const { return given_.contains(name); }

  /// Whether the field's own flag is on the command line.
  bool is_flag(const std::string& name) const;

  /// The --set arguments that change the model, for parse_overrides.
  std::vector<std::string> model_sets() const;

 private:
  void add_flag(CLI::App& app, const FieldInfo& field, const std::string& heading);
  std::string canonical(const std::string& key) const;
  Json recipe(const std::string& file);
  std::vector<std::pair<std::string, std::string>> values();
  std::pair<std::string, std::string> config_set(const std::string& set) const;

  std::vector<FieldInfo> fields_;
  std::vector<std::vector<std::string>> aliases_;  ///< spelt as names of fields
  std::vector<const CLI::Option*> flags_;          ///< one per field, or null
  std::vector<std::string> files_;
  std::vector<std::string> sets_;
  std::set<std::string> given_;
};

}  // namespace adjoin::cli
