#pragma once

// Networks that a user names on a command line, with their weights.

#include <string>

#include "adjoin/cli/choice_options.h"
#include "adjoin/cli/model_options.h"
#include "adjoin/models/load.h"

namespace adjoin::cli {

/// A model file or folder, or a name of the catalog or .json with a spec, which gets start values.
/// With a choice, the small network inside it. What is made from it has the file for a parent.
models::Model load_network(const std::string& name_or_file, const ModelOptions& options,
                           const ChoiceText& choice = {}, uint64_t seed = 0);

}  // namespace adjoin::cli
