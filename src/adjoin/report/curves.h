#pragma once

// Charts of what a network looks like inside: curves with gaps, ranges and single values, named in
// a legend, and small pictures of many layers side by side.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adjoin/report/axes.h"

namespace adjoin::report {

using Place = std::pair<double, double>;

struct Curve {
  std::string name = {};                 ///< empty: neither in the legend nor with its last value
  std::optional<size_t> colour = 0;      ///< none: grey
  std::string hint = {};                 ///< where one points at the line
  std::vector<Place> points = {};        ///< one without a place on the axes leaves a gap
  std::vector<std::string> titles = {};  ///< of the points, where one points at them
  std::string end = {};                  ///< at the end, in place of the last value
  std::vector<std::pair<double, double>> ranges = {};  ///< least and most at each point
  std::vector<Place> singles = {};                     ///< values of which the points are means
  bool is_dashed = false;
  bool is_in_legend = true;
  bool has_dots = true;  ///< at every point, not at the last and at lonely ones alone
  double strength = 1;   ///< up to 1; less is paler
};

/// Whether a legend names a curve that is alone: not where the chart's own name says it.
enum class Legend { kOfSeveral, kAlways };

/// Curves over a common x axis; the last value of a named one stands at its end. Empty where no
/// point has a place.
std::string curve_chart(const std::vector<Curve>& curves, const Axis& x, const Axis& y,
                        Legend legend = Legend::kOfSeveral);

struct Panel {
  std::string title;
  std::string note = {};  ///< at the right
  std::vector<Curve> curves;
  std::pair<std::string, std::string> ends = {};  ///< of the x axis, in place of its numbers
};

/// Pictures that are to be compared have one scale; others a larger frame and a scale each.
enum class PanelScale { kCommon, kOwn };

/// Small pictures side by side, with numbers at the ends of the x axis alone. One without a point
/// that has a place is left out where scales are its own; empty where there is none at all.
std::string panels(const std::vector<Panel>& all, const Axis& x, const Axis& y,
                   PanelScale scale = PanelScale::kCommon);

/// A logarithmic axis where positive values are more than `decades` powers of ten apart.
Axis axis_for(const std::vector<Curve>& curves, const std::string& label, double decades = 2);

}  // namespace adjoin::report
