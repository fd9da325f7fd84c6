#include "adjoin/report/rank_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "adjoin/core/table.h"
#include "adjoin/report/html_parts.h"
#include "adjoin/report/page.h"
#include "adjoin/report/svg.h"

namespace adjoin::report {
namespace {

std::string number(const Json& value, const char* format) {
  const bool is_finite = value.is_number() && std::isfinite(value.get<double>());
  return is_finite ? fmt::format(fmt::runtime(format), value.get<double>()) : "-";
}

std::string interval(const Json& said) {
  return fmt::format("{} to {}", number(said.at("ci")[0], "{:.2f}"),
                     number(said.at("ci")[1], "{:.2f}"));
}

/// What a proxy's scores are worth for a column of accuracies.
const Json& verdict(const Json& result, const std::string& proxy, const std::string& column) {
  return result.at("proxies").at(proxy).at("columns").at(column);
}

constexpr size_t kMostDots = 2000;

/// A logarithmic axis where numbers are far apart.
Axis axis_of(const std::string& label, const std::vector<Series>& points) {
  double least = INFINITY;
  double most = -INFINITY;
  for (const Series& point : points) {
    least = std::min(least, point.points[0].first);
    most = std::max(most, point.points[0].first);
  }
  return {label, least > 0 && most > 10 * least};
}

/// Every architecture with a score as a point; `y` gives its place, or no number.
template <class Y>
std::vector<Series> points_of(const Json& result, const std::string& x, Y y) {
  std::vector<Series> points;
  for (const Json& line : result.at("scores")) {
    if (points.size() == kMostDots) break;
    const Json& across = line.at(x);
    const Json up = y(line);
    if (!across.is_number() || !up.is_number()) continue;
    points.push_back(
        {line.at("name").get<std::string>(), {{across.get<double>(), up.get<double>()}}});
  }
  return points;
}

std::string verdicts(const Json& result, const std::string& column) {
  std::string text =
      "<div class=\"wide\"><table><tr><th>proxy</th><th>Spearman</th><th>95 %</th><th>Kendall</th>"
      "<th>given parameters</th><th>regret of 1</th><th>of 5</th><th>s each</th></tr>";
  for (const auto& [proxy, entry] : result.at("proxies").items()) {
    const Json& said = verdict(result, proxy, column);
    text += fmt::format(
        "<tr><td>{}</td><td><b>{}</b></td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "<td>{}</td></tr>",
        escaped(proxy), number(said.at("spearman"), "{:.3f}"), interval(said),
        number(said.at("kendall"), "{:.3f}"), number(said.at("partial_given_params"), "{:.3f}"),
        number(said.at("regret_1"), "{:.2f}"), number(said.at("regret_5"), "{:.2f}"),
        number(entry.at("seconds_per_arch"), "{:.3f}"));
  }
  return text + "</table></div>";
}

std::string against_truth(const Json& result, const std::string& column, size_t index) {
  std::string text = fmt::format("<h2>Beside {}</h2>", escaped(column)) + verdicts(result, column) +
                     "<div class=\"plots\">";
  for (const auto& [proxy, entry] : result.at("proxies").items()) {
    const std::vector<Series> points = points_of(result, proxy, [&](const Json& line) {
      return result.at("truth").at("rows").at(line.at("name").get<std::string>())[index];
    });
    if (points.empty()) continue;
    const Json& said = verdict(result, proxy, column);
    text +=
        plot(proxy,
             fmt::format("Spearman {} ({})", number(said.at("spearman"), "{:.2f}"), interval(said)),
             scatter(points, 0, axis_of(proxy, points), {column}));
  }
  return text + "</div>";
}

std::string against_params(const Json& result) {
  std::string text = "<h2>Scores beside parameters</h2><div class=\"plots\">";
  for (const auto& [proxy, entry] : result.at("proxies").items()) {
    const std::vector<Series> points =
        points_of(result, "params", [&](const Json& line) { return line.at(proxy); });
    if (points.empty() || proxy == "params") continue;
    text += plot(proxy, fmt::format("{} s each", number(entry.at("seconds_per_arch"), "{:.3f}")),
                 scatter(points, 0, axis_of("parameters", points), {proxy}));
  }
  return text + "</div>";
}

std::string not_finite(const Json& result) {
  std::string text;
  for (const auto& [proxy, entry] : result.at("proxies").items()) {
    const auto count = entry.at("not_finite").get<int64_t>();
    if (count > 0)
      text += fmt::format("<p>{}: {} scores are no numbers.</p>", escaped(proxy), count);
  }
  return text.empty() ? text : "<div class=\"problems\">" + text + "</div>";
}

}  // namespace

std::string rank_page(const Json& result) {
  const size_t count = result.at("scores").size();
  std::string body = fmt::format(
      "<h1>Architectures ranked before training</h1><p class=\"sub\">{} architectures, {} "
      "proxies</p>",
      count, result.at("proxies").size());
  if (count > kMostDots) {
    body += fmt::format("<p class=\"sub\">Plots show the first {}.</p>", kMostDots);
  }
  body += not_finite(result);
  if (result.contains("truth")) {
    size_t index = 0;
    for (const Json& column : result.at("truth").at("columns")) {
      body += against_truth(result, column.get<std::string>(), index++);
    }
  } else {
    body += against_params(result);
  }
  return page("Architectures ranked before training", body, "Made by adjoin rank.");
}

}  // namespace adjoin::report
