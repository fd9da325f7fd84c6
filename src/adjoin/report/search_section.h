#pragma once

#include <string>

#include "adjoin/report/search_view.h"

namespace adjoin::report {

/// The part of a page that shows a search: the networks beside each other, what the mixture costs,
/// how likely each candidate of a block is over time; or the trials of a study, or of others.
std::string search_section(const SearchView& search);

}  // namespace adjoin::report
