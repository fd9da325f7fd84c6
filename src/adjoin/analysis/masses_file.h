#pragma once

// Masses at points from a CSV file, a row each: mass, coordinate, coordinate, ..
//
//   mass, x, y
//   3, 0.5, 1
//   1, -2, 0

#include <string>

#include "adjoin/analysis/emd.h"

namespace adjoin::analysis {

/// Empty lines and those that start with # are skipped, and so is a first row without any number.
/// Error(kIo) when the file cannot be read; Error(kData), which opens with file and line, where a
/// row is no mass of at least 0 with as many finite coordinates as the others have.
Masses read_masses(const std::string& path);

}  // namespace adjoin::analysis
