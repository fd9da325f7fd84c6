#pragma once

// Charts as SVG text, to be put into a page. Colours are classes c0, c1, .. of the page.

#include <string>
#include <vector>

#include "adjoin/report/axes.h"
#include "adjoin/report/run_view.h"

namespace adjoin::report {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

/// Lines over a common x axis, each labelled at its end; a dot where there is one point.
std::string line_chart(const std::vector<Series>& series, const Axis& x, const Axis& y);

/// A mark per point of a series, named; series beyond `named` are grey, unless none is named.
std::string scatter(const std::vector<Series>& series, size_t named, const Axis& x, const Axis& y);

/// Heads and hidden units of every block: the large network's in outline, this one's filled; the
/// outline of a block that is removed is dashed. Skips are arcs at the left, and a block whose
/// norms stand elsewhere says so. Blocks are matched by `origin`.
std::string architecture(const ModelSpec& large, const ModelSpec& network, size_t colour);

/// Shares of a whole over time.
struct Shares {
  std::string title;
  std::vector<std::string> names;           ///< of the parts
  std::vector<std::vector<double>> values;  ///< [time][part], each time summing to 1
};

/// A small picture of each: parts above each other from the left to the right, the first in the
/// darkest shade, with the name of the largest at the end.
std::string share_panels(const std::vector<Shares>& all);

}  // namespace adjoin::report
