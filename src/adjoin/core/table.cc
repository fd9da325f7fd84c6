#include "adjoin/core/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace adjoin {
namespace {

/// Characters a terminal shows: UTF-8 continuation bytes take no place.
size_t shown_width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

std::string three_digits(double value, double step, std::initializer_list<const char*> units) {
  auto unit = units.begin();
  while (std::abs(value) >= 0.9995 * step && unit + 1 != units.end()) {
    value /= step;
    ++unit;
  }
  const double size = std::abs(value);
  const bool is_exact = unit == units.begin() && value == std::floor(value);
  const int digits = is_exact || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}{}", value, digits, **unit ? " " : "", *unit);
}

}  // namespace

Table::Table(std::vector<std::string> headings) {
  for (std::string& heading : headings) {
    is_number_.push_back(heading.starts_with('>'));
    if (is_number_.back()) heading.erase(0, 1);
  }
  rows_.push_back(std::move(headings));
}

void Table::add(std::vector<std::string> cells) {
  assert(cells.size() == is_number_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<size_t> widths(is_number_.size());
  for (const auto& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], shown_width(row[c]));
  }
  std::string result;
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (size_t c = 0; c < widths.size(); ++c) {
      const std::string& cell = rows_[r][c];
      const std::string gap(widths[c] - shown_width(cell), ' ');
      if (c > 0) line += "  ";
      line += is_number_[c] ? gap + cell : cell + gap;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
    if (r > 0) continue;
    for (size_t c = 0; c < widths.size(); ++c) {
      result += (c > 0 ? "  " : "") + std::string(widths[c], '-');
    }
    result += "\n";
  }
  return result;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string so_many(int64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", with_commas(count), thing, count == 1 ? "" : "s");
}

std::string with_commas(int64_t value) {
  std::string digits = std::to_string(value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string short_count(double value) {
  return three_digits(value, 1000, {"", "k", "M", "G", "T", "P"});
}

std::string short_bytes(double bytes) {
  return three_digits(bytes, 1024, {"B", "KiB", "MiB", "GiB", "TiB"});
}

}  // namespace adjoin
