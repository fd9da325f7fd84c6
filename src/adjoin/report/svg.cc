#include "adjoin/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "adjoin/core/table.h"

namespace adjoin::report {
namespace {

constexpr int kMostTicks = 20;

constexpr double kWidth = 640, kHeight = 300;
constexpr double kLeft = 56, kRight = 110, kTop = 14, kBottom = 44;

/// From values to places along one side of a chart.
class Scale {
 public:
  Scale(const std::vector<Series>& series, double from, double to, const Axis& axis, bool is_y)
      : from_(from), to_(to), is_log_(axis.is_log) {
    bool is_first = true;
    for (const Series& one : series) {
      for (const auto& [x, y] : one.points) {
        const double value = is_y ? y : x;
        low_ = is_first ? value : std::min(low_, value);
        high_ = is_first ? value : std::max(high_, value);
        is_first = false;
      }
    }
    if (is_log_) {
      low_ *= 0.8;
      high_ *= 1.25;
    } else {
      const double own = is_y ? std::max((high_ - low_) * 0.08, axis.room) : 0;
      const double least = 1e-6 * std::max({std::abs(low_), std::abs(high_), 1e-300});
      const double room = high_ - low_ > least ? own : std::max(own, 1e3 * least);
      low_ -= room;
      high_ += room;
    }
  }

  double operator()(double value) const {
    return from_ +
           (to_ - from_) * (fraction(value) - fraction(low_)) / (fraction(high_) - fraction(low_));
  }

  /// A few round values.
  std::vector<double> ticks() const {
    std::vector<double> result;
    if (is_log_) {
      const double first = std::floor(std::log10(low_));
      const double decades = std::log10(high_) - first;
      const std::vector<double> factors =
          decades <= 4 ? std::vector<double>{1, 2, 5} : std::vector<double>{1};
      const double stride = std::max(1.0, std::ceil(decades / 8));
      for (int i = 0; i <= kMostTicks && i * stride <= decades; ++i) {
        for (const double factor : factors) {
          const double tick = factor * std::pow(10, first + i * stride);
          if (tick >= low_ && tick <= high_) result.push_back(tick);
        }
      }
      return result;
    }
    const double rough = (high_ - low_) / 5;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = power;
    for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
      if (power * factor >= rough) {
        step = power * factor;
        break;
      }
    }
    const double first = std::ceil(low_ / step);
    for (int i = 0; i <= kMostTicks && (first + i) * step <= high_ + step * 1e-9; ++i) {
      result.push_back(first + i == 0 ? 0 : (first + i) * step);
    }
    return result;
  }

 private:
  double fraction(double value) const { return is_log_ ? std::log(value) : value; }

  double from_, to_;
  bool is_log_;
  double low_ = 0, high_ = 1;
};

std::string number(double value, bool is_log) {
  const bool is_count = is_log && value >= 1 && value < 1e13;
  return is_count ? short_count(value) : fmt::format("{:.4g}", value);
}

std::string frame(const Scale& x_scale, const Scale& y_scale, const Axis& x, const Axis& y) {
  std::string text;
  for (const double tick : y_scale.ticks()) {
    text += fmt::format(
        R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/><text x="{}" y="{:.1f}" text-anchor="end">{}</text>)",
        kLeft, kWidth - kRight, y_scale(tick), y_scale(tick), kLeft - 6, y_scale(tick) + 4,
        number(tick, y.is_log));
  }
  for (const double tick : x_scale.ticks()) {
    text += fmt::format(
        R"(<line class="axis" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/><text x="{0:.1f}" y="{3}" text-anchor="middle">{4}</text>)",
        x_scale(tick), kHeight - kBottom, kHeight - kBottom + 4, kHeight - kBottom + 18,
        number(tick, x.is_log));
  }
  text += fmt::format(R"(<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>)", kLeft,
                      kWidth - kRight, kHeight - kBottom, kHeight - kBottom);
  text += fmt::format(R"(<text class="label" x="{:.0f}" y="{}" text-anchor="middle">{}</text>)",
                      (kLeft + kWidth - kRight) / 2, kHeight - 8, escaped(x.label));
  text += fmt::format(
      R"svg(<text class="label" transform="translate(14 {:.0f}) rotate(-90)" text-anchor="middle">{}</text>)svg",
      (kTop + kHeight - kBottom) / 2, escaped(y.label));
  return text;
}

std::string wrapped(const std::string& inside, double height = kHeight) {
  return fmt::format(R"(<svg viewBox="0 0 {} {}" role="img">{}</svg>)", kWidth, height, inside);
}

/// Heights of labels that would overlap, moved apart, in the order given.
std::vector<double> apart(std::vector<double> wanted) {
  constexpr double kLine = 15;
  std::vector<size_t> order(wanted.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
  for (size_t i = 1; i < order.size(); ++i) {
    wanted[order[i]] = std::max(wanted[order[i]], wanted[order[i - 1]] + kLine);
  }
  // What left the chart below goes back up, pushing the others.
  double lowest = kHeight - kBottom + 4;
  for (size_t i = order.size(); i-- > 0;) {
    wanted[order[i]] = std::min(wanted[order[i]], lowest);
    lowest = wanted[order[i]] - kLine;
  }
  return wanted;
}

}  // namespace

std::string share_panels(const std::vector<Shares>& all) {
  constexpr double kPanelWidth = 150, kPanelHeight = 64, kHead = 18;
  std::string text;
  for (const Shares& shares : all) {
    const auto& values = shares.values;
    if (values.empty()) continue;
    const auto x = [&](size_t time) {
      return values.size() == 1
                 ? kPanelWidth * static_cast<double>(time)
                 : kPanelWidth * static_cast<double>(time) / static_cast<double>(values.size() - 1);
    };
    const size_t ends = std::max<size_t>(values.size(), 2);  // one value is as wide as many
    const auto at = [&](size_t time) -> const std::vector<double>& {
      return values[std::min(time, values.size() - 1)];
    };
    std::string areas;
    std::vector<double> below(ends, 0);
    for (size_t part = 0; part < shares.names.size(); ++part) {
      std::string lower, upper;
      for (size_t time = 0; time < ends; ++time) {
        const auto y = [&](double share) { return kHead + kPanelHeight * (1 - share); };
        lower = fmt::format(" {:.1f},{:.1f}", x(time), y(below[time])) + lower;
        below[time] += at(time)[part];
        upper += fmt::format(" {:.1f},{:.1f}", x(time), y(below[time]));
      }
      const double shade = 0.95 - 0.8 * static_cast<double>(part) /
                                      static_cast<double>(std::max<size_t>(shares.names.size(), 2));
      areas += fmt::format(
          R"svg(<polygon class="part" fill-opacity="{:.2f}" points="{}{}"><title>{}: {:.0f} %</title></polygon>)svg",
          shade, upper, lower, escaped(shares.names[part]), 100 * at(ends - 1)[part]);
    }
    const auto& last = values.back();
    const auto largest =
        static_cast<size_t>(std::max_element(last.begin(), last.end()) - last.begin());
    text += fmt::format(
        R"svg(<svg class="panel" viewBox="0 0 {:.0f} {:.0f}" role="img"><text x="0" y="12">{}</text><text class="label" x="{:.0f}" y="12" text-anchor="end">{} {:.0f} %</text>{}</svg>)svg",
        kPanelWidth, kHead + kPanelHeight, escaped(shares.title), kPanelWidth,
        escaped(shares.names[largest]), 100 * last[largest], areas);
  }
  return text;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result += c;
    }
  }
  return result;
}

std::string line_chart(const std::vector<Series>& series, const Axis& x, const Axis& y) {
  const Scale x_scale(series, kLeft, kWidth - kRight, x, false);
  const Scale y_scale(series, kHeight - kBottom, kTop, y, true);
  std::string text = frame(x_scale, y_scale, x, y);
  std::vector<double> ends;
  for (const Series& one : series) {
    ends.push_back(one.points.empty() ? kTop : y_scale(one.points.back().second) + 4);
  }
  ends = apart(std::move(ends));
  for (size_t i = 0; i < series.size(); ++i) {
    if (series[i].points.empty()) continue;
    std::string path;
    for (const auto& [px, py] : series[i].points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x_scale(px), y_scale(py));
    }
    const auto& [last_x, last_y] = series[i].points.back();
    text += fmt::format(
        R"(<path class="line c{0}" d="{1}"/><circle class="dot c{0}" cx="{2:.1f}" cy="{3:.1f}" r="3"/><text class="name c{0}" x="{4}" y="{5:.1f}">{6} {7:.2f}</text>)",
        i, path, x_scale(last_x), y_scale(last_y), kWidth - kRight + 8, ends[i],
        escaped(series[i].name), last_y);
  }
  return wrapped(text);
}

std::string scatter(const std::vector<Series>& series, size_t named, const Axis& x, const Axis& y) {
  const Scale x_scale(series, kLeft, kWidth - kRight, x, false);
  const Scale y_scale(series, kHeight - kBottom, kTop, y, true);
  std::string text = frame(x_scale, y_scale, x, y);
  for (size_t i = series.size(); i-- > 0;) {  // this run's above the others
    const std::string colour = named == 0 ? "c0" : i < named ? fmt::format("c{}", i) : "other";
    for (const auto& [px, py] : series[i].points) {
      text += fmt::format(
          R"(<circle class="dot {}" cx="{:.1f}" cy="{:.1f}" r="{}"><title>{}: {:.4g} at {}</title></circle>)",
          colour, x_scale(px), y_scale(py), i < named ? 5 : 4, escaped(series[i].name), py,
          number(px, x.is_log));
      if (i < named) {
        text += fmt::format(R"(<text class="name {}" x="{:.1f}" y="{:.1f}">{}</text>)", colour,
                            x_scale(px) + 9, y_scale(py) + 4, escaped(series[i].name));
      }
    }
  }
  return wrapped(text);
}

std::string architecture(const ModelSpec& large, const ModelSpec& network, size_t colour) {
  constexpr double kRow = 20, kBar = 12, kNames = 130, kNumber = 70;
  constexpr double kSpace = (kWidth - kNames - 2 * kNumber) / 2;
  const std::vector<PlacedBlock> whole = placed_blocks(large);
  const std::vector<PlacedBlock> own = placed_blocks(network);
  int64_t heads = 1, hidden = 1;
  for (const PlacedBlock& block : whole) {
    heads = std::max(heads, block.block->attention_dim());
    hidden = std::max(hidden, block.block->hidden);
  }
  std::string text = fmt::format(
      R"(<text class="label" x="{}" y="14">heads</text><text class="label" x="{}" y="14">hidden units</text>)",
      kNames, kNames + kSpace + kNumber);
  double y = 24;
  const auto bar = [&](double x, double outline, double filled, const std::string& label) {
    text += fmt::format(
        R"(<rect class="outline" x="{0}" y="{1}" width="{2:.1f}" height="{3}"/><rect class="fill c{4}" x="{0}" y="{1}" width="{5:.1f}" height="{3}"/><text x="{6:.1f}" y="{7}">{8}</text>)",
        x, y, outline * kSpace, kBar, colour, filled * kSpace, x + outline * kSpace + 6,
        y + kBar - 2, label);
  };
  for (const PlacedBlock& block : whole) {
    const auto kept = std::find_if(own.begin(), own.end(), [&](const PlacedBlock& candidate) {
      return candidate.block->origin == block.block->origin;
    });
    const bool is_kept = kept != own.end();
    text += fmt::format(R"(<text x="{}" y="{}" text-anchor="end">{}</text>)", kNames - 10,
                        y + kBar - 2, escaped(block.name));
    const auto share = [](int64_t part, int64_t all) {
      return static_cast<double>(part) / static_cast<double>(all);
    };
    const auto label = [&](int64_t part, int64_t all) {
      return part == all ? std::to_string(all) : fmt::format("{} of {}", part, all);
    };
    const int64_t own_heads = is_kept ? kept->block->heads : 0;
    const int64_t own_hidden = is_kept ? kept->block->hidden : 0;
    bar(kNames, share(block.block->attention_dim(), heads),
        is_kept ? share(kept->block->attention_dim(), heads) : 0,
        label(own_heads, block.block->heads));
    bar(kNames + kSpace + kNumber, share(block.block->hidden, hidden), share(own_hidden, hidden),
        label(own_hidden, block.block->hidden));
    y += kRow;
  }
  return wrapped(text, y + 4);
}

}  // namespace adjoin::report
