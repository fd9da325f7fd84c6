#pragma once

// What the commands share in reading their arguments.

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "adjoin/cli/command.h"
#include "adjoin/core/json.h"
#include "adjoin/spec/overrides.h"

namespace adjoin::cli {

/// `--data_dir=a_b` -> `--data-dir=a_b`: both spellings of a flag are the same flag.
std::string normalized_flag(std::string argument);

/// Fills the variables bound to `app`. False when help was asked for, and printed. Error(kUsage)
/// in one sentence otherwise.
bool parse(CLI::App& app, Args args);

/// Takes decimal whole numbers of a range, and says so.
CLI::Validator whole_number(int64_t least, int64_t most);

/// The same of any numbers.
CLI::Validator real_number(double least, double most);

/// What opens the keys of `--set` that change the model.
inline constexpr std::string_view kModelSection = "model.";

/// `--set model.KEY=VALUE`, any number of times; with a config also `--set KEY=VALUE`.
void add_set_option(CLI::App& app, std::vector<std::string>& sets, bool has_config = false);

/// The changes that `--set` arguments ask for; Error(kUsage) for keys that are not the model's.
std::vector<Override> parse_overrides(const std::vector<std::string>& sets);

/// One JSON object on standard output.
void print_json(const Json& json);

}  // namespace adjoin::cli
