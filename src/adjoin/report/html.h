#pragma once

// A run as one page that needs nothing else: no network, no scripts, readable on paper.

#include <string>
#include <vector>

#include "adjoin/report/search_view.h"

namespace adjoin::report {

/// `others`: runs whose networks are shown beside this one's as grey dots.
std::string html_report(const RunView& run, const std::vector<RunView>& others,
                        const std::optional<SearchView>& search = {});

/// A page that was written, and what of its run could not be read or is not as it should be.
struct Report {
  std::string path;
  std::vector<std::string> problems;
};

/// Writes report.html into the folder of a run, with the runs beside it.
Report write_report(const std::string& folder);

}  // namespace adjoin::report
