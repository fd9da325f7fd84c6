#include "adjoin/analysis/masses_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "adjoin/core/error.h"
#include "adjoin/core/json.h"
#include "adjoin/core/table.h"
#include "adjoin/core/text.h"

namespace adjoin::analysis {
namespace {

constexpr size_t kMostBytes = size_t{256} << 20;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // as spreadsheets write it

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

/// Takes what stands before the next `separator` off the front of `text`.
std::string_view next_part(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

/// Infinite where it is too large, 0 where it is too small for a double; nothing where the cell is
/// no number.
std::optional<double> number_in(std::string_view cell) {
  if (cell.size() > 1 && cell[0] == '+' && cell[1] != '-') cell.remove_prefix(1);
  double value = 0;
  const auto [end, failure] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (failure == std::errc::invalid_argument || end != cell.data() + cell.size()) return {};
  if (failure != std::errc::result_out_of_range) return value;
  return std::strtod(std::string(cell).c_str(), nullptr);
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  Masses read() {
    const std::string text = read_text_file(path_, kMostBytes);
    std::string_view rest = text;
    if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
    while (!rest.empty()) {
      const std::string_view line = trimmed(next_part(rest, '\n'));
      ++line_;
      if (!line.empty() && line.front() != '#') read_row(line);
    }
    if (masses_.mass.empty()) {
      throw Error(ErrorKind::kData, path_ + ": has no masses, must have rows mass, coordinate, ..");
    }
    return std::move(masses_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::kData, fmt::format("{}:{}: {}", path_, line_, what));
  }

  void read_row(std::string_view line) {
    const int64_t columns = std::count(line.begin(), line.end(), ',') + 1;
    if (first_line_ == 0) {
      if (columns < 2) refuse("has 1 column, must have at least 2: mass, coordinate, ..");
      first_line_ = line_;
      masses_.dim = columns - 1;
      if (is_heading(line)) return;
    }
    if (columns != masses_.dim + 1) {
      refuse(fmt::format("has {}, must have {} as line {}", so_many(columns, "column"),
                         masses_.dim + 1, first_line_));
    }
    for (int64_t column = 0; column < columns; ++column) {
      const double value = number(trimmed(next_part(line, ',')), column);
      (column == 0 ? masses_.mass : masses_.points).push_back(value);
    }
  }

  static bool is_heading(std::string_view line) {
    while (!line.empty()) {
      if (number_in(trimmed(next_part(line, ',')))) return false;
    }
    return true;
  }

  double number(std::string_view cell, int64_t column) const {
    const std::optional<double> value = number_in(cell);
    if (!value || !std::isfinite(*value)) {
      refuse(fmt::format("column {} is {}, must be a finite number", column + 1, in_quotes(cell)));
    }
    if (column == 0 && *value < 0) refuse(fmt::format("mass is {}, must be at least 0", *value));
    return *value;
  }

  const std::string& path_;
  Masses masses_;
  int64_t line_ = 0;
  int64_t first_line_ = 0;  ///< of the row that says how many columns there are; 0: none yet
};

}  // namespace

Masses read_masses(const std::string& path) { return Reader(path).read(); }

}  // namespace adjoin::analysis
