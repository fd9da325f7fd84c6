#pragma once

// What the commands share in reading their arguments.

#include <CLI/CLI.hpp>
#include <string>
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

/// `--set model.KEY=VALUE`, any number of times.
void add_set_option(CLI::App& app, std::vector<std::string>& sets);

/// The changes that `--set` arguments ask for.
std::vector<Override> parse_overrides(const std::vector<std::string>& sets);

/// The network a user means: a catalog name, a .json file with a spec, or a model file whose
/// tensors fit, with `--set` applied.
ModelSpec resolve_model(const std::string& name_or_file, const std::vector<std::string>& sets);

/// One JSON object on standard output.
void print_json(const Json& json);

}  // namespace adjoin::cli
