#pragma once

// The folder of a search, before the training of what it finds begins there.

#include <memory>
#include <string>

#include "adjoin/search/config.h"
#include "adjoin/train/run_folder.h"

namespace adjoin::search {

/// Whether a search has begun there.
bool has_search(const std::string& folder);

/// Takes hold of the folder, until the training that follows does. A search that is there goes on
/// only where the user says so: Error(kUsage).
std::unique_ptr<train::RunFolder> held(const std::string& folder, const SearchConfig& config,
                                       bool is_resumed);

}  // namespace adjoin::search
