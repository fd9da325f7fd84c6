#include "adjoin/report/dots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace adjoin::report {
namespace {

constexpr double kPalest = 0.12;

double opacity(double shade) { return kPalest + (1 - kPalest) * std::clamp(shade, 0.0, 1.0); }

/// Values with room at both ends, so that no dot stands on the frame.
Extent with_room(const Extent& extent, const Axis& axis) {
  Extent wide = extent;
  if (axis.is_log || extent.is_empty()) return wide;
  const double room = 0.04 * (extent.high() - extent.low());
  wide.add(extent.low() - room);
  wide.add(extent.high() + room);
  return wide;
}

class DotPen {
 public:
  explicit DotPen(const DotChart& chart)
      : chart_(chart), box_(box_of(chart)), x_(across()), y_(upward()) {}

  std::string draw() const {
    std::string text = legend() + frame(box_, x_, y_, chart_.x, chart_.y) + limit() + dots();
    return wrapped(text + line() + names(), box_.width, box_.height);
  }

  static bool has(const DotChart& chart, double x, double y) {
    return has_place(x, chart.x) && has_place(y, chart.y);
  }

 private:
  static constexpr double kLegend = 24;

  static Box box_of(const DotChart& chart) {
    Box box{.width = 520, .height = 280, .left = 60, .right = 24};
    if (chart.shades.first.empty()) return box;
    box.top += kLegend;
    box.height += kLegend;
    return box;
  }

  /// All values that are shown, by `of` each.
  template <class Of>
  Extent extent(Of of) const {
    Extent extent;
    const auto add = [&](double x, double y) {
      if (has(chart_, x, y)) extent.add(of(x, y));
    };
    for (const Dot& dot : chart_.dots) add(dot.x, dot.y);
    for (const auto& [x, y] : chart_.line) add(x, y);
    for (const NamedDot& dot : chart_.named) add(dot.x, dot.y);
    return extent;
  }

  Scale across() const {
    Extent values = extent([](double x, double) { return x; });
    if (has_limit()) values.add(*chart_.limit);
    return Scale::across(with_room(values, chart_.x), box_, chart_.x);
  }

  Scale upward() const {
    return Scale::upward(extent([](double, double y) { return y; }), box_, chart_.y);
  }

  bool has_limit() const { return chart_.limit && has_place(*chart_.limit, chart_.x); }

  /// Pale to dark, with the values of both ends.
  std::string legend() const {
    if (chart_.shades.first.empty()) return "";
    constexpr int kSteps = 8;
    constexpr double kStep = 14;
    const double end = box_.end() - kLetter * static_cast<double>(letters(chart_.shades.second));
    const double start = end - 6 - kSteps * kStep;
    std::string text = fmt::format(
        R"(<text x="{:.1f}" y="14" text-anchor="end">{}</text><text x="{:.1f}" y="14">{}</text><g class="shaded c0">)",
        start - 6, escaped(chart_.shades.first), end, escaped(chart_.shades.second));
    for (int i = 0; i < kSteps; ++i) {
      text += fmt::format(
          R"(<rect x="{:.1f}" y="4" width="{}" height="11" stroke="none" fill-opacity="{:.2f}"/>)",
          start + i * kStep, kStep, opacity(i / (kSteps - 1.0)));
    }
    return text + "</g>";
  }

  std::string limit() const {
    if (!has_limit()) return "";
    const double x = x_(*chart_.limit);
    const bool is_late =
        x + 6 + kLetter * static_cast<double>(letters(chart_.limit_name)) > box_.end();
    return fmt::format(
        R"(<line class="axis" stroke-dasharray="5 4" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/><text class="label halo" x="{3:.1f}" y="{4}" text-anchor="{5}">{6}</text>)",
        x, box_.top, box_.base(), is_late ? x - 5 : x + 5, box_.base() - 6,
        is_late ? "end" : "start", escaped(chart_.limit_name));
  }

  std::string dots() const {
    const std::string colour = chart_.colour ? fmt::format("c{}", *chart_.colour) : "other";
    std::string text;
    std::optional<DotLook> look;
    for (const Dot& dot : chart_.dots) {
      if (!has(chart_, dot.x, dot.y)) continue;
      if (look != dot.look) {
        const char* const name = dot.look == DotLook::kFilled   ? "dot"
                                 : dot.look == DotLook::kHollow ? "ring"
                                                                : "shaded";
        text += fmt::format(R"({}<g class="{} {}">)", look ? "</g>" : "", name, colour);
        look = dot.look;
      }
      const std::string shade = dot.look == DotLook::kShaded
                                    ? fmt::format(R"( fill-opacity="{:.2f}")", opacity(dot.shade))
                                    : "";
      text += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{}"{}><title>{}</title></circle>)",
                          x_(dot.x), y_(dot.y), dot.look == DotLook::kHollow ? 3 : 4, shade,
                          escaped(dot.title));
    }
    return look ? text + "</g>" : "";
  }

  std::string line() const {
    std::string path, marks;
    for (const auto& [x, y] : chart_.line) {
      if (!has(chart_, x, y)) continue;
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x_(x), y_(y));
      marks += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="4" pointer-events="none"/>)",
                           x_(x), y_(y));
    }
    if (path.empty()) return "";
    return fmt::format(R"(<path class="line c{}" pointer-events="none" d="{}"/>)",
                       chart_.line_colour, path) +
           (chart_.has_line_dots
                ? fmt::format(R"(<g class="dot c{}">{}</g>)", chart_.line_colour, marks)
                : "");
  }

  /// A name stands below its dot, where lines seldom are, to the right or where there is room.
  std::string names() const {
    constexpr double kBelow = 18, kAbove = 10;
    std::vector<const NamedDot*> shown;
    std::vector<double> heights;
    for (const NamedDot& dot : chart_.named) {
      if (!has(chart_, dot.x, dot.y)) continue;
      shown.push_back(&dot);
      const double below = y_(dot.y) + kBelow;
      heights.push_back(below > box_.base() - 4 ? y_(dot.y) - kAbove : below);
    }
    heights = apart(std::move(heights), box_.base() - 4);
    std::string text;
    for (size_t i = 0; i < shown.size(); ++i) {
      const NamedDot& dot = *shown[i];
      const double x = x_(dot.x);
      const bool is_late = x + kLetter * static_cast<double>(letters(dot.name)) > box_.width;
      text += fmt::format(
          R"(<circle class="dot c{0}" cx="{1:.1f}" cy="{2:.1f}" r="6"><title>{5}</title></circle><text class="name halo c{0}" x="{3:.1f}" y="{4:.1f}" text-anchor="{6}">{5}</text>)",
          dot.colour, x, y_(dot.y), is_late ? x + 4 : x - 2, heights[i], escaped(dot.name),
          is_late ? "end" : "start");
    }
    return text;
  }

  const DotChart& chart_;
  Box box_;
  Scale x_, y_;
};

}  // namespace

std::string dot_chart(const DotChart& chart) {
  const bool is_empty = std::none_of(chart.dots.begin(), chart.dots.end(), [&](const Dot& dot) {
    return DotPen::has(chart, dot.x, dot.y);
  });
  return is_empty ? "" : DotPen(chart).draw();
}

}  // namespace adjoin::report
