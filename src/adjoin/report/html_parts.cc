#include "adjoin/report/html_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "adjoin/core/table.h"
#include "adjoin/report/axes.h"

namespace adjoin::report {

std::string plot(const std::string& title, const std::string& sentence,
                 const std::string& picture) {
  if (picture.empty()) return "";
  return fmt::format("<div><h3>{}</h3><p class=\"sub\">{}</p>{}</div>", escaped(title),
                     escaped(sentence), picture);
}

std::string plots(const std::string& inside) {
  return inside.empty() ? "" : "<div class=\"plots\">" + inside + "</div>";
}

std::string sentence(const std::string& text) {
  return "<p class=\"sub\">" + escaped(text) + "</p>";
}

std::string notes(const std::vector<std::string>& texts) {
  std::string result;
  for (const std::string& text : texts) {
    result += sentence(fmt::format("Note: {}{}", text, text.ends_with('.') ? "" : "."));
  }
  return result;
}

std::string cell(std::optional<double> value) { return value ? short_number(*value) : ""; }

std::string count_cell(std::optional<double> value) {
  if (!value) return "";
  constexpr double kMostDigits = 1e9;
  if (std::abs(*value) >= kMostDigits) return fmt::format("{:.2e}", *value);
  if (*value != std::floor(*value)) return short_number(*value);
  return with_commas(static_cast<int64_t>(*value));
}

DenseTable::DenseTable(std::vector<std::string> headings) {
  for (std::string& heading : headings) {
    is_words_.push_back(heading.starts_with('<'));
    if (is_words_.back()) heading.erase(0, 1);
  }
  headings_ = std::move(headings);
}

void DenseTable::add(std::vector<std::string> cells) {
  assert(cells.size() == headings_.size());
  rows_.push_back(std::move(cells));
}

std::string DenseTable::html() const {
  if (rows_.empty()) return "";
  std::vector<bool> is_shown;
  for (size_t c = 0; c < headings_.size(); ++c) {
    is_shown.push_back(
        std::any_of(rows_.begin(), rows_.end(), [&](const auto& row) { return !row[c].empty(); }));
  }
  std::string text = "<div class=\"wide\"><table class=\"dense\">";
  const auto add_row = [&](const char* tag, const auto& text_of) {
    text += "<tr>";
    for (size_t c = 0; c < headings_.size(); ++c) {
      if (!is_shown[c]) continue;
      text +=
          fmt::format("<{0}{1}>{2}</{0}>", tag, is_words_[c] ? " class=\"words\"" : "", text_of(c));
    }
    text += "</tr>";
  };
  add_row("th", [&](size_t c) { return escaped(headings_[c]); });
  for (const auto& row : rows_) {
    add_row("td",
            [&](size_t c) { return row[c].empty() && !is_words_[c] ? std::string("-") : row[c]; });
  }
  return text + "</table></div>";
}

}  // namespace adjoin::report
