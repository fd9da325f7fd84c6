#pragma once

// How far a long job is, on standard error: one line with a bar that is redrawn in place where that
// is a terminal, else now and then a line. A job is a row of units (epochs); each ends as one line.
//
//   Progress progress(std::cerr);
//   progress.begin("epoch 3/10", batches, {.before = 0.2, .share = 0.1});
//   for (..) progress.update(batch, "loss 1.234  acc 56.7 %");
//   progress.finish("loss 1.210  acc 57.1 %");
//
// For use by one thread.

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "adjoin/core/fields.h"
#include "adjoin/core/progress_line.h"

namespace adjoin {

enum class ProgressStyle { kAuto, kBar, kLines, kSilent };

template <>
inline constexpr auto kEnumNames<ProgressStyle> =
    std::to_array<EnumName<ProgressStyle>>({{"auto", ProgressStyle::kAuto},
                                            {"bar", ProgressStyle::kBar},
                                            {"lines", ProgressStyle::kLines},
                                            {"silent", ProgressStyle::kSilent}});

/// Which part of the whole run a unit is, as fractions of its work; a share of 0 says nothing.
struct RunPart {
  double before = 0;  ///< done before this unit
  double share = 0;   ///< of this unit
};

/// Seconds per item, where the last ones count most. The first item is left out: it warms caches.
class Pace {
 public:
  void restart(double now);
  void add(double done, double now);

  /// Nothing before two items and a second are past.
  std::optional<double> seconds_per_item() const;

 private:
  double start_ = 0;
  double last_time_ = 0;
  double last_done_ = 0;
  bool has_first_ = false;
  double items_ = 0;  ///< fading sums
  double seconds_ = 0;
};

/// The screen as `Progress` sees it; tests have their own.
struct ProgressScreen {
  std::function<size_t()> columns;
  bool is_utf8 = false;

  /// That of standard error.
  static ProgressScreen of_terminal();
};

class Progress {
 public:
  using Clock = std::function<double()>;  ///< seconds since any moment

  /// kAuto is a bar where `err` is std::cerr and that is a terminal which can redraw a line.
  explicit Progress(std::ostream& err, ProgressStyle style = ProgressStyle::kAuto,
                    Clock clock = steady_seconds,
                    ProgressScreen screen = ProgressScreen::of_terminal());

  /// Clears an unfinished bar, so that what comes next (an error) has a line of its own.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// A unit of `total` items; 0 where nobody knows how many.
  void begin(const std::string& label, int64_t total, RunPart part = {});

  /// `done` items of the unit. Cheap: most calls draw nothing.
  void update(int64_t done, std::string_view text);

  /// Ends the unit with a line that stays: label, text and the time it took.
  void finish(std::string_view text);

  /// A line of its own, above the bar.
  void note(std::string_view sentence);

  static double steady_seconds();

 private:
  ProgressState state() const;
  std::optional<double> run_left(double unit_left) const;
  void draw();
  void clear();
  void print(const std::string& line);

  std::ostream& err_;
  ProgressStyle style_;
  Clock clock_;
  ProgressScreen screen_;

  bool is_active_ = false;  ///< between begin and finish
  bool is_drawn_ = false;   ///< a bar stands on the screen
  std::string label_;
  std::string text_;
  int64_t total_ = 0;
  int64_t done_ = 0;
  RunPart part_;
  double unit_start_ = 0;
  double last_shown_ = 0;
  Pace pace_;
  BarLayout layout_ = 0;             ///< the barest so far, so that the line keeps its shape
  size_t columns_ = 0;               ///< of the screen when it was last drawn
  std::optional<double> run_start_;  ///< when the first unit with a share began
  double run_start_fraction_ = 0;
};

}  // namespace adjoin
