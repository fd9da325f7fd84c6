#include "adjoin/cli/arguments.h"

#include <algorithm>
#include <charconv>
#include <iostream>

#include "adjoin/core/suggest.h"

namespace adjoin::cli {
namespace {

/// "; did you mean --lr?" where an unknown flag is left over and one of the app's is near.
std::string likely_flag(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const std::string& argument : app.remaining()) {
    if (!argument.starts_with("--")) continue;
    const std::string flag = argument.substr(0, argument.find('='));
    if (!nearest_names(flag, names).empty()) return suggestion(flag, names);
  }
  return "";
}

template <class Number>
CLI::Validator number_between(Number least, Number most, const char* kind) {
  return CLI::Validator(
      [least, most, kind](std::string& text) {
        Number value = 0;
        const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool is_good = failure == std::errc() && end == text.data() + text.size() &&
                             value >= least && value <= most;  // never of NaN
        return is_good ? std::string()
                       : fmt::format("\"{}\" must be a {} from {} to {}", text, kind, least, most);
      },
      "");
}

}  // namespace

std::string normalized_flag(std::string argument) {
  if (!argument.starts_with("--")) return argument;
  const auto end =
      argument.begin() + static_cast<int64_t>(std::min(argument.find('='), argument.size()));
  std::replace(argument.begin(), end, '_', '-');
  return argument;
}

bool parse(CLI::App& app, Args args) {
  std::vector<std::string> reversed(args.rbegin(), args.rend());  // as CLI11 wants them
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    app.name("adjoin " + app.get_name());
    std::cout << app.help();
    return false;
  } catch (const CLI::ParseError& e) {
    std::string message = e.what() + likely_flag(app);
    std::replace(message.begin(), message.end(), '\n', ' ');
    throw Error(ErrorKind::kUsage, fmt::format("{}: {}; run 'adjoin {} --help'", app.get_name(),
                                               message, app.get_name()));
  }
  for (const CLI::Option* option : app.get_options()) {
    const auto& results = option->results();
    const bool takes_value = option->get_expected_max() > 0 && option->get_type_size() > 0;
    if (takes_value && std::find(results.begin(), results.end(), "") != results.end()) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}: {} is empty", app.get_name(), option->get_name()));
    }
  }
  return true;
}

CLI::Validator whole_number(int64_t least, int64_t most) {
  return number_between(least, most, "whole number");
}

CLI::Validator real_number(double least, double most) {
  return number_between(least, most, "number");
}

void add_set_option(CLI::App& app, std::vector<std::string>& sets, bool has_config) {
  const std::string model = "model.img_size=384, model.num_classes=10, model.blocks.3.heads=2, ..";
  app.add_option("--set", sets,
                 has_config ? "change any key of the config, or the model: " + model
                            : "change the model: " + model)
      ->type_name(has_config ? "KEY=VALUE" : "model.KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

std::vector<Override> parse_overrides(const std::vector<std::string>& sets) {
  std::vector<Override> overrides;
  for (const std::string& set : sets) {
    const size_t equals = set.find('=');
    if (equals == std::string::npos) {
      throw Error(ErrorKind::kUsage, fmt::format("--set: \"{}\" must be model.KEY=VALUE", set));
    }
    if (!set.starts_with(kModelSection)) {
      throw Error(ErrorKind::kUsage, fmt::format("--set: unknown key {}; keys start with model.",
                                                 set.substr(0, equals)));
    }
    overrides.push_back(
        {set.substr(kModelSection.size(), equals - kModelSection.size()), set.substr(equals + 1)});
  }
  return overrides;
}

void print_json(const Json& json) {
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace adjoin::cli
