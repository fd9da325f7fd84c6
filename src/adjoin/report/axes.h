#pragma once

// What charts stand on: the way from values to places, ticks, labels that keep apart.

#include <string>
#include <string_view>
#include <vector>

namespace adjoin::report {

struct Axis {
  std::string label;
  bool is_log = false;
  double room = 0;        ///< at least so much above and below what a y axis shows
  bool is_whole = false;  ///< ticks at whole numbers alone: layers
};

/// A chart within its picture.
struct Box {
  double width = 640;
  double height = 300;
  double left = 56;
  double right = 110;
  double top = 14;
  double bottom = 44;

  double end() const { return width - right; }
  double base() const { return height - bottom; }
};

/// Whether a value has a place on an axis: a number, neither as large nor as small that arithmetic
/// on it fails, and above zero where the axis is logarithmic.
bool has_place(double value, const Axis& axis);

/// The least and the most of some values; from 0 to 1 of none.
class Extent {
 public:
  void add(double value);
  bool is_empty() const { return is_empty_; }
  double low() const { return is_empty_ ? 0 : low_; }
  double high() const { return is_empty_ ? 1 : high_; }

 private:
  bool is_empty_ = true;
  double low_ = 0;
  double high_ = 0;
};

/// From values to places along one side of a chart.
class Scale {
 public:
  static Scale across(const Extent& extent, const Box& box, const Axis& axis);
  static Scale upward(const Extent& extent, const Box& box, const Axis& axis);

  double operator()(double value) const;

  /// A few round values.
  std::vector<double> ticks() const;

 private:
  Scale(double from, double to, const Axis& axis) : from_(from), to_(to), axis_(axis) {}
  void widen(double room);
  double fraction(double value) const;
  std::vector<double> log_ticks() const;
  std::vector<double> even_ticks() const;

  double from_, to_;
  Axis axis_;
  double low_ = 0, high_ = 1;
};

/// Grid, ticks and names of both axes.
std::string frame(const Box& box, const Scale& x_scale, const Scale& y_scale, const Axis& x,
                  const Axis& y);

/// The picture around what is drawn.
std::string wrapped(const std::string& inside, double width, double height);

/// Heights of labels that would overlap, moved apart, in the order given; none below `lowest`.
std::vector<double> apart(std::vector<double> wanted, double lowest);

/// A value at a tick.
std::string tick_text(double value, bool is_log);

/// Three digits or so of any number: 0.830, 12.35, 1.2e-05.
std::string short_number(double value);

/// Letters a reader sees: bytes that go on with one take no place.
size_t letters(const std::string& text);

/// The mean width of a letter of a name in a chart.
inline constexpr double kLetter = 7.6;

/// The first letters of a text that is longer.
std::string cut(const std::string& text, size_t most);

/// Text with the characters that HTML and SVG give a meaning replaced.
std::string escaped(std::string_view text);

}  // namespace adjoin::report
