#pragma once

// Pieces that several pages are put together from.

#include <optional>
#include <string>
#include <vector>

namespace adjoin::report {

/// A chart under its name and a sentence how to read it, both plain text; empty without a chart.
std::string plot(const std::string& title, const std::string& sentence, const std::string& picture);

/// Plots side by side where there is room; empty without any.
std::string plots(const std::string& inside);

/// A paragraph of plain text.
std::string sentence(const std::string& text);

/// Remarks in plain text, a paragraph each.
std::string notes(const std::vector<std::string>& texts);

/// A number as the cell of a table; empty without one.
std::string cell(std::optional<double> value);

/// The same of a count: 12,345,678, and powers of ten where there are many.
std::string count_cell(std::optional<double> value);

/// A table in small letters. Columns in which no row has anything are left out.
class DenseTable {
 public:
  /// Headings are plain text; one that starts with '<' belongs to a column of words, set to the
  /// left, as the first column is.
  explicit DenseTable(std::vector<std::string> headings);

  /// Cells are HTML.
  void add(std::vector<std::string> cells);

  /// Empty without rows.
  std::string html() const;

 private:
  std::vector<bool> is_words_;
  std::vector<std::string> headings_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace adjoin::report
