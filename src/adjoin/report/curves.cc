#include "adjoin/report/curves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace adjoin::report {
namespace {

constexpr size_t kManyPoints = 30;

/// Where the values of some curves are.
struct Bounds {
  Extent x, y;

  Bounds(const std::vector<Curve>& curves, const Axis& x_axis, const Axis& y_axis) {
    const auto add = [&](const Place& point) {
      if (!has_place(point.first, x_axis)) return;
      x.add(point.first);  // of gaps, too: charts of the same layers have the same axis
      if (has_place(point.second, y_axis)) y.add(point.second);
    };
    for (const Curve& curve : curves) {
      for (const Place& point : curve.points) add(point);
      for (const Place& single : curve.singles) add(single);
      for (size_t i = 0; i < std::min(curve.ranges.size(), curve.points.size()); ++i) {
        add({curve.points[i].first, curve.ranges[i].first});
        add({curve.points[i].first, curve.ranges[i].second});
      }
    }
  }
};

/// Draws curves with the axes it was given.
class Pen {
 public:
  Pen(const Box& box, const Bounds& bounds, Axis x, Axis y)
      : x_axis_(std::move(x)),
        y_axis_(std::move(y)),
        x_(Scale::across(bounds.x, box, x_axis_)),
        y_(Scale::upward(bounds.y, box, y_axis_)) {}

  const Scale& x() const { return x_; }
  const Scale& y() const { return y_; }

  bool has(const Place& point) const {
    return has_place(point.first, x_axis_) && has_place(point.second, y_axis_);
  }

  /// The last point that has a place.
  const Place* last(const Curve& curve) const {
    const auto found = std::find_if(curve.points.rbegin(), curve.points.rend(),
                                    [&](const Place& point) { return has(point); });
    return found == curve.points.rend() ? nullptr : &*found;
  }

  std::string draw(const Curve& curve, double radius) const {
    const std::string colour = colour_of(curve);
    std::string text = band(curve, colour);
    for (const Place& single : curve.singles) {
      if (!has(single)) continue;
      text += fmt::format(R"(<circle class="faint {}" cx="{:.1f}" cy="{:.1f}" r="2"/>)", colour,
                          x_(single.first), y_(single.second));
    }
    return text + line(curve, colour) + dots(curve, colour, radius);
  }

  static std::string colour_of(const Curve& curve) {
    return curve.colour ? fmt::format("c{}", *curve.colour % 8) : "other";
  }

  /// Grey is too pale for letters.
  static std::string name_class(const Curve& curve) {
    return curve.colour ? "name " + colour_of(curve) : "label";
  }

  static std::string style_of(const Curve& curve) {
    return (curve.is_dashed ? " stroke-dasharray=\"5 4\"" : "") +
           (curve.strength < 1 ? fmt::format(" opacity=\"{:.2f}\"", curve.strength) : "");
  }

 private:
  std::string band(const Curve& curve, const std::string& colour) const {
    std::string text;
    std::vector<std::string> above, below;
    const auto finish = [&] {
      if (!above.empty()) {
        above.insert(above.end(), below.rbegin(), below.rend());
        text +=
            fmt::format(R"(<polygon class="band {}" points="{}"/>)", colour, fmt::join(above, " "));
      }
      above.clear();
      below.clear();
    };
    for (size_t i = 0; i < std::min(curve.ranges.size(), curve.points.size()); ++i) {
      const double across = curve.points[i].first;
      const auto& [least, most] = curve.ranges[i];
      if (!has({across, least}) || !has({across, most})) {
        finish();
        continue;
      }
      above.push_back(fmt::format("{:.1f},{:.1f}", x_(across), y_(most)));
      below.push_back(fmt::format("{:.1f},{:.1f}", x_(across), y_(least)));
    }
    finish();
    return text;
  }

  std::string line(const Curve& curve, const std::string& colour) const {
    std::string path;
    bool is_going = false;
    for (const Place& point : curve.points) {
      if (has(point)) {
        path += fmt::format("{}{:.1f} {:.1f} ", is_going ? "L" : "M", x_(point.first),
                            y_(point.second));
      }
      is_going = has(point);
    }
    if (path.empty()) return "";
    const std::string hint = curve.hint.empty() ? "" : "<title>" + escaped(curve.hint) + "</title>";
    return fmt::format(R"(<path class="line {}"{} d="{}">{}</path>)", colour, style_of(curve), path,
                       hint);
  }

  std::string dots(const Curve& curve, const std::string& colour, double radius) const {
    std::string text;
    const Place* const end = last(curve);
    for (size_t i = 0; i < curve.points.size(); ++i) {
      const Place& point = curve.points[i];
      if (!has(point)) continue;
      const bool is_lonely = (i == 0 || !has(curve.points[i - 1])) &&
                             (i + 1 == curve.points.size() || !has(curve.points[i + 1]));
      if (!curve.has_dots && !is_lonely && (&point != end || curve.name.empty())) continue;
      const std::string title =
          i < curve.titles.size() ? "<title>" + escaped(curve.titles[i]) + "</title>" : "";
      // Many dots would hide their line: they are there to be pointed at.
      const bool is_seen = curve.points.size() <= kManyPoints || is_lonely || &point == end;
      text += fmt::format(R"(<circle class="{} {}" cx="{:.1f}" cy="{:.1f}" r="{}">{}</circle>)",
                          is_seen ? "dot" : "spot", colour, x_(point.first), y_(point.second),
                          radius, title);
    }
    return text;
  }

  Axis x_axis_, y_axis_;
  Scale x_, y_;
};

struct Names {
  std::string text;
  double height = 0;
};

/// Names of the curves in rows, with a stroke of each before it.
Names names_of(const std::vector<Curve>& curves, Legend legend, double left, double width) {
  constexpr double kRow = 17, kStroke = 20, kGap = 16;
  constexpr size_t kMostLetters = 44;
  Names result;
  const auto is_named = [](const Curve& curve) {
    return !curve.name.empty() && curve.is_in_legend;
  };
  const auto count = std::count_if(curves.begin(), curves.end(), is_named);
  if (count == 0 || (count == 1 && legend == Legend::kOfSeveral)) return result;
  double x = left;
  double y = 12;
  for (const Curve& curve : curves) {
    if (!is_named(curve)) continue;
    const std::string name = cut(curve.name, kMostLetters);
    const double needed = kStroke + 5 + kLetter * static_cast<double>(letters(name));
    if (x > left && x + needed > width) {
      x = left;
      y += kRow;
    }
    result.text += fmt::format(
        R"(<path class="line {0}"{1} d="M{2:.1f} {3:.1f} h{4:.0f}"/><text class="{8}" x="{5:.1f}" y="{6:.1f}">{7}</text>)",
        Pen::colour_of(curve), Pen::style_of(curve), x, y - 4, kStroke, x + kStroke + 5, y,
        escaped(name), Pen::name_class(curve));
    x += needed + kGap;
  }
  result.height = y + 8;
  return result;
}

/// How a panel is laid out.
struct Sketch {
  Box box;
  size_t most_ticks;    ///< beside the first and the last if there are more: one between them
  size_t most_letters;  ///< of a title
};

constexpr Sketch kSmallSketch{
    {.width = 170, .height = 112, .left = 32, .right = 6, .top = 22, .bottom = 18}, 3, 16};
constexpr Sketch kLargeSketch{
    {.width = 256, .height = 156, .left = 38, .right = 6, .top = 24, .bottom = 18}, 6, 36};

std::string panel_frame(const Panel& panel, const Sketch& sketch, const Bounds& bounds,
                        const Pen& pen, bool is_log) {
  const Box& box = sketch.box;
  std::string text;
  std::vector<double> ticks = pen.y().ticks();
  if (ticks.size() > sketch.most_ticks) {
    ticks = {ticks.front(), ticks[ticks.size() / 2], ticks.back()};
  }
  for (const double tick : ticks) {
    text += fmt::format(
        R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/><text class="small" x="{}" y="{:.1f}" text-anchor="end">{}</text>)",
        box.left, box.end(), pen.y()(tick), pen.y()(tick), box.left - 4, pen.y()(tick) + 3,
        tick_text(tick, is_log));
  }
  const bool is_named = !panel.ends.first.empty();
  const std::string from = is_named ? panel.ends.first : fmt::format("{:.4g}", bounds.x.low());
  const std::string to = is_named ? panel.ends.second : fmt::format("{:.4g}", bounds.x.high());
  text += fmt::format(
      R"(<line class="axis" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/><text class="small" x="{0}" y="{3}">{4}</text>)",
      box.left, box.end(), box.base(), box.height - 5, escaped(cut(from, 16)));
  if (to == from) return text;
  return text + fmt::format(R"(<text class="small" x="{}" y="{}" text-anchor="end">{}</text>)",
                            box.end(), box.height - 5, escaped(cut(to, 16)));
}

std::string panel_picture(const Panel& panel, const Sketch& sketch, const Bounds& bounds,
                          const Axis& x, const Axis& y) {
  const Pen pen(sketch.box, bounds, x, y);
  std::string text = fmt::format(
      R"(<text x="0" y="12">{}</text><text class="label" x="{}" y="12" text-anchor="end">{}</text>)",
      escaped(cut(panel.title, sketch.most_letters)), sketch.box.end(), escaped(panel.note));
  text += panel_frame(panel, sketch, bounds, pen, y.is_log);
  for (const Curve& curve : panel.curves) text += pen.draw(curve, 2);
  return fmt::format(
      R"(<svg class="panel" viewBox="0 0 {} {}" role="img"><title>{}</title>{}</svg>)",
      sketch.box.width, sketch.box.height, escaped(panel.title), text);
}

}  // namespace

std::string curve_chart(const std::vector<Curve>& curves, const Axis& x, const Axis& y,
                        Legend legend) {
  constexpr double kHeight = 250;
  constexpr size_t kMostLabels = 12;
  const Bounds bounds(curves, x, y);
  if (bounds.y.is_empty()) return "";
  Box box{.width = 520, .left = 60, .right = 64};
  const Names names = names_of(curves, legend, box.left, box.width);
  box.top += names.height;
  box.height = kHeight + names.height;
  const Pen pen(box, bounds, x, y);
  std::string text = names.text + frame(box, pen.x(), pen.y(), x, y);
  std::vector<double> heights;
  std::vector<const Curve*> named;
  for (const Curve& curve : curves) {
    text += pen.draw(curve, 3);
    const Place* const last = pen.last(curve);
    if (last == nullptr || curve.name.empty()) continue;
    heights.push_back(pen.y()(last->second) + 4);
    named.push_back(&curve);
  }
  // More labels than lines of text have no room.
  if (named.size() > kMostLabels) named.clear();
  heights = apart(std::move(heights), box.base() + 4);
  for (size_t i = 0; i < named.size(); ++i) {
    const Curve& curve = *named[i];
    const std::string end =
        curve.end.empty() ? short_number(pen.last(curve)->second) : escaped(curve.end);
    text += fmt::format(R"(<text class="{}" x="{}" y="{:.1f}">{}</text>)", Pen::name_class(curve),
                        box.end() + 8, heights[i], end);
  }
  return wrapped(text, box.width, box.height);
}

std::string panels(const std::vector<Panel>& all, const Axis& x, const Axis& y, PanelScale scale) {
  const bool is_common = scale == PanelScale::kCommon;
  const Sketch sketch = is_common ? kSmallSketch : kLargeSketch;
  std::vector<Curve> together;
  for (const Panel& panel : all) {
    together.insert(together.end(), panel.curves.begin(), panel.curves.end());
  }
  const Bounds common(together, x, y);
  if (common.y.is_empty()) return "";
  std::string text = fmt::format("<div class=\"panels{}\">", is_common ? "" : " large");
  for (const Panel& panel : all) {
    const Bounds bounds = is_common ? common : Bounds(panel.curves, x, y);
    if (!bounds.y.is_empty()) text += panel_picture(panel, sketch, bounds, x, y);
  }
  return text + "</div>";
}

Axis axis_for(const std::vector<Curve>& curves, const std::string& label, double decades) {
  const Bounds plain(curves, {}, {});
  const Bounds positive(curves, {}, {"", true});
  if (plain.y.low() < 0 || positive.y.is_empty()) return {label};
  return {label, std::log10(positive.y.high()) - std::log10(positive.y.low()) > decades};
}

}  // namespace adjoin::report
