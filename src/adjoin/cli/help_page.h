#pragma once

// Help for commands with many flags: two columns, long texts wrapped, `--[no-]flag` for booleans.

#include <CLI/CLI.hpp>
#include <string>

namespace adjoin::cli {

class HelpPage : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
};

}  // namespace adjoin::cli
