#pragma once

// --alpha, --alphas, --keep and --geometry: the ways to say on a command line which small network
// is meant.

#include <CLI/CLI.hpp>
#include <string>

#include "adjoin/spec/chosen_part.h"

namespace adjoin::cli {

struct ChoiceOptions {
  std::optional<int64_t> alpha;
  std::string alphas;
  std::optional<double> keep;
  std::string geometry = "kept";

  /// Error(kUsage) for a geometry that does not exist.
  ChoiceText text() const;
};

void add_choice_options(CLI::App& app, ChoiceOptions& options);

}  // namespace adjoin::cli
