#pragma once

// --alpha, --alphas, --keep and --geometry: the ways to say on a command line which small network
// is meant.

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "adjoin/spec/derive.h"

namespace adjoin::cli {

struct ChoiceOptions {
  std::optional<int64_t> alpha;
  std::string alphas;
  std::optional<double> keep;
  std::string geometry = "kept";
};

void add_choice_options(CLI::App& app, ChoiceOptions& options);

/// The small network the options mean inside `large`; nothing when they say nothing. Error(kUsage)
/// when they say two things, or something the network cannot do.
std::optional<Derived> chosen_part(const ModelSpec& large, const ChoiceOptions& options);

}  // namespace adjoin::cli
