#pragma once

// Tables for people: columns that line up, numbers to the right.

#include <string>
#include <vector>

namespace adjoin {

class Table {
 public:
  /// A heading that starts with '>' belongs to a column of numbers, set to the right.
  explicit Table(std::vector<std::string> headings);

  void add(std::vector<std::string> cells);

  /// Heading, rule, rows; two spaces between columns; ends with a newline.
  std::string text() const;

 private:
  std::vector<bool> is_number_;
  std::vector<std::vector<std::string>> rows_;
};

/// A cell of a CSV file, in quotes where it needs them.
std::string csv_cell(const std::string& text);

/// 1, "trial" -> "1 trial"; 2048 -> "2,048 trials".
std::string so_many(int64_t count, std::string_view thing);

/// 5717416 -> "5,717,416".
std::string with_commas(int64_t value);

/// A count in three digits: 1253683200 -> "1.25 G".
std::string short_count(double value);

/// Bytes in three digits: 22869664 -> "21.8 MiB".
std::string short_bytes(double bytes);

}  // namespace adjoin
