#include "adjoin/core/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "adjoin/core/suggest.h"

namespace adjoin {
namespace {

/// Bytes of the character that begins the text; a broken one counts for itself.
size_t character_bytes(std::string_view text) {
  size_t bytes = 1;
  while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xc0U) == 0x80) ++bytes;
  return bytes;
}

/// Two for the scripts of East Asia and pictures, judged by leading bytes; in doubt too many.
size_t character_columns(std::string_view character) {
  if (character.size() < 3) return 1;
  const auto lead = static_cast<unsigned char>(character[0]);
  const auto second = static_cast<unsigned char>(character[1]);
  if (lead == 0xe1) return second >= 0x84 && second <= 0x87 ? 2 : 1;  // Hangul letters
  if (lead == 0xe2) return second >= 0xba ? 2 : 1;                    // from CJK radicals on
  return lead >= 0xe3 ? 2 : 1;
}

std::string percent_text(double fraction) {
  // 100 % is for what is done.
  const double percent = fraction >= 1 ? 100 : std::min(99.0, std::floor(100 * fraction));
  return fmt::format("{:.0f} %", std::max(0.0, percent));
}

std::string repeated(std::string_view mark, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += mark;
  return text;
}

std::string bar(double fraction, size_t columns, bool is_utf8) {
  const double filled = std::clamp(fraction, 0.0, 1.0) * static_cast<double>(columns);
  auto full = static_cast<size_t>(filled);
  if (!is_utf8) {
    const bool has_head = full < columns;
    return "[" + std::string(full, '=') + (has_head ? ">" : "") +
           std::string(columns - full - (has_head ? 1 : 0), '.') + "]";
  }
  const bool has_half = full < columns && filled - static_cast<double>(full) >= 0.5;
  return repeated("━", full) + (has_half ? "╸" : "") +
         repeated("─", columns - full - (has_half ? 1 : 0));
}

struct Shown {
  size_t bar;    ///< columns, 0 for none
  size_t times;  ///< 2: of the unit and the run, 1: of the run if it is known
};

// By BarLayout. Bars of few lengths: one that follows every change of the text would jump.
constexpr std::array<Shown, 13> kLayouts = {{{30, 2},
                                             {24, 2},
                                             {18, 2},
                                             {12, 2},
                                             {8, 2},
                                             {30, 1},
                                             {24, 1},
                                             {18, 1},
                                             {12, 1},
                                             {8, 1},
                                             {0, 2},
                                             {0, 1},
                                             {0, 0}}};
constexpr Shown kPlain = {0, 2};

std::string times_text(const ProgressState& state, const Shown& shown) {
  std::vector<std::string> times;
  const bool has_unit = shown.times == 2 || (shown.times == 1 && !state.run_left_s);
  if (state.left_s && has_unit) times.push_back(left_text(*state.left_s));
  if (state.run_left_s && shown.times > 0) times.push_back("run " + left_text(*state.run_left_s));
  return join(times);
}

std::string line(const ProgressState& state, const Shown& shown, bool is_utf8) {
  std::vector<std::string> parts = {state.label};
  if (state.fraction && shown.bar > 0) {
    parts[0] += fmt::format(" {} {:>5}", bar(*state.fraction, shown.bar, is_utf8),
                            percent_text(*state.fraction));
  } else if (state.fraction) {
    parts.push_back(percent_text(*state.fraction));
  }
  parts.push_back(state.text);
  parts.push_back(times_text(state, shown));
  std::erase(parts, "");
  return join(parts, "  ");
}

}  // namespace

std::string short_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds > 1e9) return "?";
  if (seconds < 9.95) return fmt::format("{:.1f} s", std::max(0.0, seconds));
  const int64_t whole = std::llround(seconds);
  const int64_t hours = whole / 3600;
  const int64_t minutes = whole / 60 % 60;
  if (whole < 60) return fmt::format("{} s", whole);
  if (hours == 0) return fmt::format("{}:{:02}", minutes, whole % 60);
  if (hours < 48) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{} d {} h", hours / 24, hours % 24);
}

std::string left_text(double seconds) {
  // Tenths that tick by would only be restless.
  const double whole = std::round(seconds);
  return (whole < 60 ? fmt::format("{:.0f} s", whole) : short_duration(whole)) + " left";
}

size_t columns_of(std::string_view text, bool is_utf8) {
  if (!is_utf8) return text.size();
  size_t columns = 0;
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    columns += character_columns(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return columns;
}

std::string cut_to_columns(std::string_view text, size_t columns, bool is_utf8) {
  if (columns_of(text, is_utf8) <= columns) return std::string(text);
  const std::string_view mark = is_utf8 ? "…" : "~";
  std::string result;
  size_t used = 0;
  while (!text.empty()) {
    const size_t bytes = is_utf8 ? character_bytes(text) : 1;
    const size_t more = is_utf8 ? character_columns(text.substr(0, bytes)) : 1;
    if (used + more + 1 > columns) break;
    result += text.substr(0, bytes);
    used += more;
    text.remove_prefix(bytes);
  }
  if (columns > 0) result += mark;
  return result;
}

BarLayout bar_layout(const ProgressState& state, size_t width, bool is_utf8, BarLayout least) {
  BarLayout layout = std::min(least, kLayouts.size() - 1);
  while (layout + 1 < kLayouts.size() &&
         columns_of(line(state, kLayouts[layout], is_utf8), is_utf8) > width) {
    ++layout;
  }
  return layout;
}

std::string bar_line(const ProgressState& state, size_t width, bool is_utf8, BarLayout least) {
  const Shown& shown = kLayouts[bar_layout(state, width, is_utf8, least)];
  ProgressState shorter = state;
  std::string text = line(shorter, shown, is_utf8);
  while (columns_of(text, is_utf8) > width) {
    const size_t gap = shorter.text.rfind("  ");
    if (gap == std::string::npos) return cut_to_columns(text, width, is_utf8);
    shorter.text.erase(gap);
    text = line(shorter, shown, is_utf8);
  }
  return text;
}

std::string plain_line(const ProgressState& state) { return line(state, kPlain, true); }

bool is_utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;  // as the C library does
    std::string text(value);
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; });
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace adjoin
