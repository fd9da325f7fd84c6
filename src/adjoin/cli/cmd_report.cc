// adjoin report: runs as pages and tables.
#include <iostream>

#include "adjoin/cli/arguments.h"
#include "adjoin/core/error.h"
#include "adjoin/core/fields.h"
#include "adjoin/report/html.h"
#include "adjoin/report/tables.h"

namespace adjoin::cli {
namespace {

enum class Format { kHtml, kMarkdown, kCsv, kLatex };

report::TableFormat table_format(Format format) {
  if (format == Format::kCsv) return report::TableFormat::kCsv;
  return format == Format::kLatex ? report::TableFormat::kLatex : report::TableFormat::kMarkdown;
}

}  // namespace
}  // namespace adjoin::cli

namespace adjoin {

template <>
inline constexpr auto kEnumNames<cli::Format> =
    std::to_array<EnumName<cli::Format>>({{"html", cli::Format::kHtml},
                                          {"md", cli::Format::kMarkdown},
                                          {"csv", cli::Format::kCsv},
                                          {"latex", cli::Format::kLatex}});

}  // namespace adjoin

namespace adjoin::cli {

int run_report(Args args) {
  CLI::App app(
      "A page of each run, report.html in its folder; or one table of all runs, with mean and "
      "spread "
      "over seeds.",
      "report");
  std::vector<std::string> folders;
  std::string format_name = "html";
  bool is_json = false;
  app.add_option("RUN", folders, "run folders")->required();
  app.add_option("--format", format_name, "html, or a table: md, csv or latex")
      ->capture_default_str();
  app.add_flag("--json", is_json, "print JSON");
  if (!parse(app, args)) return 0;
  Format format = Format::kHtml;
  from_json(Json(format_name), format, "--format");

  for (const std::string& folder : folders) report::check_run(folder);
  const auto print_problems = [](const std::string& folder, const auto& problems) {
    for (const std::string& problem : problems) {
      std::cerr << "adjoin: note: " << one_line(folder) << ": " << one_line(problem) << '\n';
    }
  };
  Json json = {{"runs", Json::array()}};
  std::string text;
  if (format == Format::kHtml) {
    for (const std::string& folder : folders) {
      const auto [path, problems] = report::write_report(folder);
      print_problems(folder, problems);
      json["runs"].push_back({{"run", folder}, {"report", path}});
      text += one_line(path) + "\n";
    }
  } else {
    std::vector<report::RunView> runs;
    for (const std::string& folder : folders) {
      runs.push_back(report::read_run(folder));
      print_problems(folder, runs.back().problems);
    }
    text = report::runs_table(runs, table_format(format));
    json = {{"format", format_name}, {"table", text}};
  }
  if (is_json) {
    print_json(json);
  } else {
    std::cout << text;
  }
  return 0;
}

}  // namespace adjoin::cli
