#include "adjoin/core/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "adjoin/core/error.h"

namespace adjoin {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr double kLineSeconds = 10;

bool can_redraw_lines(const std::ostream& err) {
  const char* term = std::getenv("TERM");
  return &err == &std::cerr && isatty(STDERR_FILENO) == 1 && term != nullptr && *term != '\0' &&
         std::string_view(term) != "dumb";
}

size_t terminal_columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

}  // namespace

void Pace::restart(double now) {
  *this = {};
  start_ = now;
  last_time_ = now;
}

void Pace::add(double done, double now) {
  const double items = done - last_done_;
  const double seconds = now - last_time_;
  if (items <= 0) return;  // the time goes to the next one
  last_done_ = done;
  last_time_ = now;
  if (!has_first_) {
    has_first_ = true;
    return;
  }
  constexpr double kMemorySeconds = 15;
  const double keep = std::exp(-seconds / std::max(kMemorySeconds, 8 * seconds));
  items_ = keep * items_ + items;
  seconds_ = keep * seconds_ + seconds;
}

std::optional<double> Pace::seconds_per_item() const {
  if (items_ == 0 || last_time_ - start_ < 1) return std::nullopt;
  return seconds_ / items_;
}

ProgressScreen ProgressScreen::of_terminal() { return {terminal_columns, is_utf8_locale()}; }

double Progress::steady_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

Progress::Progress(std::ostream& err, ProgressStyle style, Clock clock, ProgressScreen screen)
    : err_(err), style_(style), clock_(std::move(clock)), screen_(std::move(screen)) {
  if (style_ == ProgressStyle::kAuto) {
    style_ = can_redraw_lines(err) ? ProgressStyle::kBar : ProgressStyle::kLines;
  }
}

Progress::~Progress() {
  try {
    clear();
  } catch (...) {  // a stream told to throw: there is no line to clear then
    is_drawn_ = false;
  }
}

void Progress::begin(const std::string& label, int64_t total, RunPart part) {
  const double now = clock_();
  label_ = one_line(label);
  text_.clear();
  total_ = std::max<int64_t>(total, 0);
  done_ = 0;
  part_ = part;
  unit_start_ = now;
  last_shown_ = now;
  pace_.restart(now);
  if (part.share > 0 && !run_start_) {
    run_start_ = now;
    run_start_fraction_ = part.before;
  }
  is_active_ = true;
  if (style_ == ProgressStyle::kBar) draw();
}

void Progress::update(int64_t done, std::string_view text) {
  if (!is_active_ || style_ == ProgressStyle::kSilent) return;
  const double now = clock_();
  done_ = total_ > 0 ? std::min(done, total_) : done;
  pace_.add(static_cast<double>(done_), now);
  const bool is_bar = style_ == ProgressStyle::kBar;
  if (now - last_shown_ < (is_bar ? kRedrawSeconds : kLineSeconds)) return;
  last_shown_ = now;
  text_ = one_line(std::string(text));
  if (is_bar) {
    draw();
  } else {
    print(plain_line(state()));
  }
}

void Progress::finish(std::string_view text) {
  if (!is_active_) return;
  is_active_ = false;
  layout_ = bar_layout(state(), columns_, screen_.is_utf8);  // one long text is not for ever
  clear();
  ProgressState last;
  last.label = label_;
  last.text = one_line(std::string(text));
  print(plain_line(last) + "  in " + short_duration(clock_() - unit_start_));
}

void Progress::note(std::string_view sentence) {
  const bool was_drawn = is_drawn_;
  clear();
  print(one_line(std::string(sentence)));
  if (was_drawn) draw();
}

ProgressState Progress::state() const {
  ProgressState now{label_, {}, text_, {}, {}};
  if (total_ <= 0) return now;
  now.fraction = static_cast<double>(done_) / static_cast<double>(total_);
  const std::optional<double> pace = pace_.seconds_per_item();
  if (!pace) return now;
  now.left_s = *pace * static_cast<double>(total_ - done_);
  now.run_left_s = run_left(*now.left_s);
  return now;
}

/// As if the rest of the run had the pace of all up to the end of this unit.
std::optional<double> Progress::run_left(double unit_left) const {
  const double after = 1 - part_.before - part_.share;
  const double covered = part_.before + part_.share - run_start_fraction_;
  const bool is_last = after < 1e-9;  // its own time says it
  if (part_.share <= 0 || !run_start_ || covered <= 0 || is_last) return std::nullopt;
  const double seconds = clock_() - *run_start_ + unit_left;
  return unit_left + seconds / covered * after;
}

void Progress::draw() {
  // The last column stays free: some terminals wrap as soon as it is written to.
  const size_t columns = std::max<size_t>(screen_.columns(), 2) - 1;
  if (columns != columns_) layout_ = 0;
  columns_ = columns;
  const ProgressState now = state();
  layout_ = bar_layout(now, columns, screen_.is_utf8, layout_);
  err_ << '\r' << bar_line(now, columns, screen_.is_utf8, layout_) << "\x1b[K" << std::flush;
  is_drawn_ = true;
}

void Progress::clear() {
  if (!is_drawn_) return;
  err_ << "\r\x1b[K" << std::flush;
  is_drawn_ = false;
}

void Progress::print(const std::string& text) {
  if (style_ != ProgressStyle::kSilent) err_ << text << '\n' << std::flush;
}

}  // namespace adjoin
