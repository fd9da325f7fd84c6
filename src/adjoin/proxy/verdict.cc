#include "adjoin/proxy/verdict.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "adjoin/core/error.h"
#include "adjoin/core/json.h"
#include "adjoin/core/text.h"
#include "adjoin/proxy/correlation.h"

namespace adjoin::proxy {
namespace {

constexpr size_t kMostTruthBytes = size_t{64} << 20;

/// The cells of a line, without spaces around them.
std::vector<std::string> cells(std::string_view line) {
  std::vector<std::string> result;
  while (true) {
    const size_t comma = line.find(',');
    std::string_view cell = line.substr(0, comma);
    const size_t begin = cell.find_first_not_of(" \t\r");
    const size_t end = cell.find_last_not_of(" \t\r");
    result.emplace_back(begin == std::string_view::npos ? "" : cell.substr(begin, end - begin + 1));
    if (comma == std::string_view::npos) return result;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace

Truth read_truth(const std::string& path) {
  const std::string text = read_text_file(path, kMostTruthBytes);
  Truth truth;
  int64_t number = 0;
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::kData, fmt::format("{}: line {}: {}", path, number, what));
  };
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    std::vector<std::string> row = cells(line);
    for (const std::string& cell : row) {
      if (!is_utf8(cell)) refuse("is no UTF-8 text");
    }
    if (truth.columns.empty()) {
      if (row.size() < 2)
        refuse("the heading must be a name and at least one column of accuracies");
      truth.columns.assign(row.begin() + 1, row.end());
      continue;
    }
    if (row.size() != truth.columns.size() + 1) {
      refuse(fmt::format("{} has {} cells, the heading {}", row[0], row.size(),
                         truth.columns.size() + 1));
    }
    std::vector<double> values;
    for (size_t i = 1; i < row.size(); ++i) {
      double value = 0;
      const char* const stop = row[i].data() + row[i].size();
      const auto [last, failure] = std::from_chars(row[i].data(), stop, value);
      if (failure != std::errc() || last != stop || !std::isfinite(value)) {
        refuse(fmt::format("{}: {} is \"{}\", no number", row[0], truth.columns[i - 1], row[i]));
      }
      values.push_back(value);
    }
    if (!truth.rows.emplace(row[0], std::move(values)).second) {
      refuse(fmt::format("{} came before", row[0]));
    }
  }
  if (truth.rows.empty()) throw Error(ErrorKind::kData, path + ": has no rows");
  return truth;
}

std::vector<Verdict> verdicts(const std::vector<Scores>& all, std::span<const double> params,
                              std::span<const double> truth, uint64_t seed) {
  std::vector<Verdict> result;
  for (const Scores& scores : all) {
    std::vector<double> x;
    std::vector<double> y;
    std::vector<double> z;
    for (size_t i = 0; i < scores.values.size(); ++i) {
      if (!std::isfinite(scores.values[i])) continue;
      x.push_back(scores.values[i]);
      y.push_back(truth[i]);
      z.push_back(params[i]);
    }
    Verdict verdict;
    verdict.proxy = scores.name;
    verdict.architectures = x.size();
    verdict.not_finite = scores.values.size() - x.size();
    verdict.spearman = spearman(x, y);
    verdict.kendall = kendall(x, y);
    verdict.partial_given_params = partial_spearman(x, y, z);
    verdict.regret_1 = top_k_regret(x, y, 1);
    verdict.regret_5 = top_k_regret(x, y, 5);
    const auto of_rows = [&](const std::vector<size_t>& rows) {
      std::vector<double> a;
      std::vector<double> b;
      for (const size_t row : rows) {
        a.push_back(x[row]);
        b.push_back(y[row]);
      }
      return spearman(a, b);
    };
    std::tie(verdict.low, verdict.high) = bootstrap_interval(x.size(), of_rows, seed);
    result.push_back(std::move(verdict));
  }
  return result;
}

}  // namespace adjoin::proxy
