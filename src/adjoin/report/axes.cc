#include "adjoin/report/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "adjoin/core/table.h"

namespace adjoin::report {
namespace {

constexpr int kMostTicks = 20;

}  // namespace

bool has_place(double value, const Axis& axis) {
  constexpr double kMost = 1e300;
  if (!std::isfinite(value) || std::abs(value) > kMost) return false;
  return !axis.is_log || value >= 1 / kMost;
}

void Extent::add(double value) {
  low_ = is_empty_ ? value : std::min(low_, value);
  high_ = is_empty_ ? value : std::max(high_, value);
  is_empty_ = false;
}

Scale Scale::across(const Extent& extent, const Box& box, const Axis& axis) {
  Scale scale(box.left, box.end(), axis);
  scale.low_ = extent.low();
  scale.high_ = extent.high();
  scale.widen(0);
  return scale;
}

Scale Scale::upward(const Extent& extent, const Box& box, const Axis& axis) {
  Scale scale(box.base(), box.top, axis);
  scale.low_ = extent.low();
  scale.high_ = extent.high();
  scale.widen(std::max((extent.high() - extent.low()) * 0.08, axis.room));
  return scale;
}

void Scale::widen(double room) {
  if (axis_.is_log) {
    low_ *= 0.8;
    high_ *= 1.25;
    return;
  }
  const double least = 1e-6 * std::max({std::abs(low_), std::abs(high_), 1e-300});
  if (high_ - low_ <= least)
    room = std::max(room, axis_.is_whole ? std::max(0.5, 1e3 * least) : 1e3 * least);
  low_ -= room;
  high_ += room;
}

double Scale::fraction(double value) const { return axis_.is_log ? std::log(value) : value; }

double Scale::operator()(double value) const {
  return from_ +
         (to_ - from_) * (fraction(value) - fraction(low_)) / (fraction(high_) - fraction(low_));
}

std::vector<double> Scale::ticks() const {
  if (!axis_.is_log) return even_ticks();
  const std::vector<double> result = log_ticks();
  return result.size() < 3 ? even_ticks() : result;
}

std::vector<double> Scale::log_ticks() const {
  std::vector<double> result;
  const double lowest = std::floor(std::log10(low_));
  const double highest = std::log10(high_);
  const std::vector<double> factors =
      highest - lowest <= 4 ? std::vector<double>{1, 2, 5} : std::vector<double>{1};
  const double stride = std::max(1.0, std::ceil((highest - lowest) / 8));
  const double first = std::floor(lowest / stride) * stride;  // so that 1 is among them
  for (int i = 0; i <= kMostTicks && first + i * stride <= highest; ++i) {
    for (const double factor : factors) {
      const double tick = factor * std::pow(10, first + i * stride);
      if (tick >= low_ && tick <= high_) result.push_back(tick);
    }
  }
  return result;
}

std::vector<double> Scale::even_ticks() const {
  std::vector<double> result;
  const double rough = (high_ - low_) / (axis_.is_whole ? 14 : 5);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (power * factor >= rough) {
      step = power * factor;
      break;
    }
  }
  if (axis_.is_whole) step = std::max(step, 1.0);
  const double first = std::ceil(low_ / step);
  for (int i = 0; i <= kMostTicks && (first + i) * step <= high_ + step * 1e-9; ++i) {
    result.push_back(first + i == 0 ? 0 : (first + i) * step);
  }
  return result;
}

std::string tick_text(double value, bool is_log) {
  const bool is_count = is_log && value >= 1 && value < 1e13;
  if (is_log && value < 1e-3) {  // short enough to stand before the axis: 5e-4
    const double power = std::floor(std::log10(value) + 1e-9);
    return fmt::format("{:.3g}e{:.0f}", value / std::pow(10, power), power);
  }
  const bool is_long = !is_log && std::abs(value) >= 1e4 && std::abs(value) < 1e6;
  if (is_long) return fmt::format("{:.0f}", value);  // no 1e+04 between 5000 and 15000
  return is_count ? short_count(value) : fmt::format("{:.4g}", value);
}

std::string short_number(double value) {
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (!(size >= 1e-3 && size < 1e6)) return fmt::format("{:.1e}", value);
  const int digits = size >= 1e4 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : 4;
  return fmt::format("{:.{}f}", value, digits);
}

std::string frame(const Box& box, const Scale& x_scale, const Scale& y_scale, const Axis& x,
                  const Axis& y) {
  std::string text;
  for (const double tick : y_scale.ticks()) {
    text += fmt::format(
        R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/><text x="{}" y="{:.1f}" text-anchor="end">{}</text>)",
        box.left, box.end(), y_scale(tick), y_scale(tick), box.left - 6, y_scale(tick) + 4,
        tick_text(tick, y.is_log));
  }
  for (const double tick : x_scale.ticks()) {
    text += fmt::format(
        R"(<line class="axis" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/><text x="{0:.1f}" y="{3}" text-anchor="middle">{4}</text>)",
        x_scale(tick), box.base(), box.base() + 4, box.base() + 18, tick_text(tick, x.is_log));
  }
  text += fmt::format(R"(<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>)", box.left,
                      box.end(), box.base(), box.base());
  text += fmt::format(R"(<text class="label" x="{:.0f}" y="{}" text-anchor="middle">{}</text>)",
                      (box.left + box.end()) / 2, box.height - 8, escaped(x.label));
  text += fmt::format(
      R"svg(<text class="label" transform="translate(14 {:.0f}) rotate(-90)" text-anchor="middle">{}</text>)svg",
      (box.top + box.base()) / 2, escaped(y.label));
  return text;
}

std::string wrapped(const std::string& inside, double width, double height) {
  return fmt::format(R"(<svg viewBox="0 0 {} {}" role="img">{}</svg>)", width, height, inside);
}

std::vector<double> apart(std::vector<double> wanted, double lowest) {
  constexpr double kLine = 15;
  std::vector<size_t> order(wanted.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
  for (size_t i = 1; i < order.size(); ++i) {
    wanted[order[i]] = std::max(wanted[order[i]], wanted[order[i - 1]] + kLine);
  }
  // What left the chart below goes back up, pushing the others.
  for (size_t i = order.size(); i-- > 0;) {
    wanted[order[i]] = std::min(wanted[order[i]], lowest);
    lowest = wanted[order[i]] - kLine;
  }
  return wanted;
}

size_t letters(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

std::string cut(const std::string& text, size_t most) {
  if (letters(text) <= most) return text;
  size_t end = 0;
  for (size_t seen = 0; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xC0) != 0x80 && ++seen == most) break;
  }
  return text.substr(0, end) + "…";
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

}  // namespace adjoin::report
