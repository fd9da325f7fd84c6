#pragma once

// The folder of a search, before the training of what it finds begins there.

#include <memory>
#include <string>

#include "adjoin/search/config.h"
#include "adjoin/train/run_folder.h"

namespace adjoin::search {

/// Whether a search has begun there.
bool has_search(const std::string& folder);

/// Error(kUsage) where a new search cannot begin, or `is_resumed` and it is part of another one.
void check_folder(const std::string& folder, bool is_resumed);

/// Takes hold of the folder, until the training that follows does. A search that is there goes on
/// only where the user says so.
std::unique_ptr<train::RunFolder> held(const std::string& folder, const SearchConfig& config,
                                       bool is_resumed);

}  // namespace adjoin::search
