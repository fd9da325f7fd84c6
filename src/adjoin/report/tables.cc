#include "adjoin/report/tables.h"

#include <fmt/format.h>

#include <cmath>

#include "adjoin/core/table.h"

namespace adjoin::report {
namespace {

struct Row {
  std::string model;
  std::string network;
  std::vector<double> top1;
  int64_t params = 0;
  int64_t macs = 0;
  std::vector<double> latency_ms;
};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double centre = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - centre) * (value - centre);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::vector<Row> rows_of(const std::vector<RunView>& runs) {
  std::vector<std::pair<std::string, Row>> rows;  // by config without its seed, and network
  for (const RunView& run : runs) {
    Json config = run.config;
    config.erase("seed");
    const std::string key = config.empty() ? run.folder : config.dump();
    for (const NetworkView& network : run.networks) {
      if (!network.top1()) continue;
      Row* row = nullptr;
      for (auto& [known, candidate] : rows) {
        if (known == key && candidate.network == network.name) row = &candidate;
      }
      if (row == nullptr) {
        rows.push_back(
            {key, {run.setting("model"), network.name, {}, network.params, network.macs, {}}});
        row = &rows.back().second;
      }
      row->top1.push_back(*network.top1());
      if (network.latency_ms) row->latency_ms.push_back(*network.latency_ms);
    }
  }
  std::vector<Row> result;
  for (auto& [key, row] : rows) result.push_back(std::move(row));
  return result;
}

/// Characters that LaTeX gives a meaning.
std::string for_latex(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (std::string_view("_%&#${}").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

std::string spread(const std::vector<double>& values, std::string_view sign) {
  if (values.empty()) return "-";
  if (values.size() == 1) return fmt::format("{:.2f}", values[0]);
  return fmt::format("{:.2f} {} {:.2f}", mean(values), sign, deviation(values));
}

std::string csv(const std::vector<Row>& rows) {
  std::string text = "model,network,seeds,top1_mean,top1_std,params,macs,latency_ms\n";
  for (const Row& row : rows) {
    text +=
        fmt::format("{},{},{},{:.4f},{:.4f},{},{},{}\n", csv_cell(row.model), csv_cell(row.network),
                    row.top1.size(), mean(row.top1), deviation(row.top1), row.params, row.macs,
                    row.latency_ms.empty() ? "" : fmt::format("{:.3f}", mean(row.latency_ms)));
  }
  return text;
}

std::string count(int64_t value) {
  return value > 0 ? short_count(static_cast<double>(value)) : "-";
}

}  // namespace

std::string runs_table(const std::vector<RunView>& runs, TableFormat format) {
  const std::vector<Row> rows = rows_of(runs);
  if (format == TableFormat::kCsv) return csv(rows);
  const bool is_latex = format == TableFormat::kLatex;
  std::string text =
      is_latex ? "\\begin{tabular}{llrrrrr}\n\\toprule\nmodel & network & seeds & top-1 (\\%) & "
                 "params & MACs & CPU ms \\\\\n\\midrule\n"
               : "| model | network | seeds | top-1 % | params | MACs | CPU ms |\n"
                 "|---|---|---|---|---|---|---|\n";
  for (const Row& row : rows) {
    const std::string top1 = spread(row.top1, is_latex ? "$\\pm$" : "±");
    const std::string ms =
        row.latency_ms.empty() ? "-" : fmt::format("{:.2f}", mean(row.latency_ms));
    text += is_latex ? fmt::format("{} & {} & {} & {} & {} & {} & {} \\\\\n", for_latex(row.model),
                                   for_latex(row.network), row.top1.size(), top1, count(row.params),
                                   count(row.macs), ms)
                     : fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", row.model, row.network,
                                   row.top1.size(), top1, count(row.params), count(row.macs), ms);
  }
  if (is_latex) text += "\\bottomrule\n\\end{tabular}\n";
  return text;
}

}  // namespace adjoin::report
