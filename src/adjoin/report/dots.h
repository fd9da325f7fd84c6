#pragma once

// Charts of many dots, some of them named.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adjoin/report/axes.h"

namespace adjoin::report {

/// Filled, hollow, or filled the darker the more.
enum class DotLook { kFilled, kHollow, kShaded };

struct Dot {
  double x = 0;
  double y = 0;
  std::string title;  ///< where one points at it
  DotLook look = DotLook::kFilled;
  double shade = 1;  ///< 0 is the palest, 1 the darkest
};

struct NamedDot {
  double x = 0;
  double y = 0;
  std::string name;
  size_t colour = 0;
};

struct DotChart {
  Axis x, y;
  std::vector<Dot> dots;                             ///< the last on top
  std::optional<size_t> colour = std::nullopt;       ///< of the dots; none: grey
  std::vector<std::pair<double, double>> line = {};  ///< through some of them
  size_t line_colour = 0;
  bool has_line_dots = false;
  std::vector<NamedDot> named = {};
  std::optional<double> limit = {};  ///< a dashed line upwards
  std::string limit_name = {};
  /// Least and most of what the shades show; empty: no legend.
  std::pair<std::string, std::string> shades = {};
};

/// Empty without dots. Dots that have no place on the axes are left out.
std::string dot_chart(const DotChart& chart);

}  // namespace adjoin::report
