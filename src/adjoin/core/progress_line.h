#pragma once

// What a line of progress says, apart from when and where it is drawn (core/progress.h).

#include <optional>
#include <string>
#include <string_view>

namespace adjoin {

/// "5.3 s", "42 s", "12:34", "1:23:45", "2 d 3 h".
std::string short_duration(double seconds);

/// "40 s left", "2:10 left".
std::string left_text(double seconds);

/// One moment of a unit of work, such as an epoch.
struct ProgressState {
  std::string label;               ///< "epoch 3/10"
  std::optional<double> fraction;  ///< done of this unit, 0 to 1
  std::string text;                ///< "loss 1.234  acc 56.7 %"
  std::optional<double> left_s;    ///< until the unit ends
  std::optional<double> run_left_s;
};

/// How much a line shows, from 0 (a long bar and all times) to the barest: on narrow screens first
/// the bar shrinks, then the unit's time, the bar and all times go.
using BarLayout = size_t;

/// The first layout, not before `least`, that fits into `width` columns; the barest if none does.
BarLayout bar_layout(const ProgressState& state, size_t width, bool is_utf8, BarLayout least = 0);

/// A line with a bar, of at most `width` columns: where even the barest layout is too wide, the
/// text loses its last parts (two spaces stand between them). ASCII unless `is_utf8`.
std::string bar_line(const ProgressState& state, size_t width, bool is_utf8, BarLayout least = 0);

/// The same without a bar, however long.
std::string plain_line(const ProgressState& state);

/// Columns a terminal needs for the text; those of a terminal without UTF-8 show bytes.
size_t columns_of(std::string_view text, bool is_utf8);

/// The text, or its beginning and a mark where it takes more columns.
std::string cut_to_columns(std::string_view text, size_t columns, bool is_utf8);

/// Whether the user's locale (LC_ALL, LC_CTYPE, LANG) writes UTF-8.
bool is_utf8_locale();

}  // namespace adjoin
