#pragma once

// Runs as the table of a paper: networks in rows, mean and spread over seeds.

#include <string>
#include <vector>

#include "adjoin/report/run_view.h"

namespace adjoin::report {

enum class TableFormat { kMarkdown, kCsv, kLatex };

/// Runs whose configs differ in nothing but the seed are one row per network; the spread is the
/// standard deviation.
std::string runs_table(const std::vector<RunView>& runs, TableFormat format);

}  // namespace adjoin::report
