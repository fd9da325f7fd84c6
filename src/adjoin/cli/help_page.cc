#include "adjoin/cli/help_page.h"

#include <sstream>
#include <string_view>
#include <utility>

namespace adjoin::cli {
namespace {

constexpr size_t kTextColumn = 32;
constexpr size_t kLastColumn = 100;

/// The words of the text in lines that begin at kTextColumn, the first without its margin.
std::string wrapped(const std::string& text) {
  std::istringstream words(text);
  std::string result;
  std::string word;
  size_t column = kTextColumn;
  while (words >> word) {
    const bool is_first = result.empty();
    if (!is_first && column + 1 + word.size() > kLastColumn) {
      result += "\n" + std::string(kTextColumn, ' ');
      column = kTextColumn;
    } else if (!is_first) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

}  // namespace

std::string HelpPage::make_help(const CLI::App* app, std::string name,
                                CLI::AppFormatMode mode) const {
  std::string page = CLI::Formatter::make_help(app, std::move(name), mode);
  constexpr std::string_view kTwoEmptyLines = "\n\n\n";  // as CLI11 parts groups
  for (size_t at = 0; (at = page.find(kTwoEmptyLines, at)) != std::string::npos;) page.erase(at, 1);
  return page;
}

std::string HelpPage::make_option(const CLI::Option* option, bool is_positional) const {
  std::string line = "  " + make_option_name(option, is_positional) + make_option_opts(option);
  const std::string text = wrapped(make_option_desc(option));
  if (text.empty()) return line + "\n";
  const bool fits = line.size() + 2 <= kTextColumn;
  line += fits ? std::string(kTextColumn - line.size(), ' ') : "\n" + std::string(kTextColumn, ' ');
  return line + text + "\n";
}

std::string HelpPage::make_option_name(const CLI::Option* option, bool is_positional) const {
  const std::vector<std::string>& long_names = option->get_lnames();
  if (is_positional || long_names.empty()) {
    return CLI::Formatter::make_option_name(option, is_positional);
  }
  std::string name;
  for (const std::string& letter : option->get_snames()) name += "-" + letter + ",";
  const bool has_negation = !option->get_fnames().empty();
  return name + (has_negation ? "--[no-]" : "--") + long_names.front();
}

}  // namespace adjoin::cli
