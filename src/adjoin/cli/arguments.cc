#include "adjoin/cli/arguments.h"

#include <algorithm>
#include <iostream>

#include "adjoin/cli/model_options.h"
#include "adjoin/spec/catalog.h"

namespace adjoin::cli {

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
    std::string message = e.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    throw Error(ErrorKind::kUsage, fmt::format("{}: {}; run 'adjoin {} --help'", app.get_name(),
                                               message, app.get_name()));
  }
  return true;
}

void add_set_option(CLI::App& app, std::vector<std::string>& sets) {
  app.add_option("--set", sets, "change the model: model.depth=6, model.blocks.3.heads=2, ..")
      ->type_name("model.KEY=VALUE")
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
    constexpr std::string_view kSection = "model.";
    if (!set.starts_with(kSection)) {
      throw Error(ErrorKind::kUsage, fmt::format("--set: unknown key {}; keys start with model.",
                                                 set.substr(0, equals)));
    }
    overrides.push_back(
        {set.substr(kSection.size(), equals - kSection.size()), set.substr(equals + 1)});
  }
  return overrides;
}

ModelSpec resolve_model(const std::string& name_or_file, const std::vector<std::string>& sets) {
  const std::vector<Override> overrides = parse_overrides(sets);
  if (is_checkpoint_path(name_or_file)) {
    const io::ModelFile file = io::open_model(name_or_file);
    if (const io::Fit fit = io::fit(file.header.spec, file.content); !fit.is_exact()) {
      throw Error(ErrorKind::kData, fmt::format("{}: does not fit {}: {}", name_or_file,
                                                file.header.spec.name, io::describe(fit)));
    }
    print_notes(file.notes);
    return with_overrides(file.header.spec, overrides);
  }
  const bool is_file = name_or_file.ends_with(".json");
  const ModelSpec spec = is_file ? read_spec_file(name_or_file) : catalog_spec(name_or_file);
  return overrides.empty() ? spec : with_overrides(spec, overrides);
}

void print_json(const Json& json) {
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace adjoin::cli
