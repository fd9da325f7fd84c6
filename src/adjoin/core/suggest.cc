#include "adjoin/core/suggest.h"

#include <algorithm>
#include <utility>

namespace adjoin {

namespace {

/// Row i of the table of edit distances: entry j turns the first i of `a` into the first j of `b`.
std::vector<size_t> last_row(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1,
                             cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swap) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost.back();
}

/// Edit distance, or that to the beginning of `candidate` when `name` is clearly only begun.
size_t distance_to(std::string_view name, const std::string& candidate) {
  const std::vector<size_t> row = last_row(name, candidate);
  const size_t begun = *std::min_element(row.begin(), row.end());
  const bool is_begun = name.size() >= 4 && begun <= name.size() / 4;
  return is_begun ? std::min(row.back(), begun + 1) : row.back();
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) { return last_row(a, b).back(); }

std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string> names,
                                       size_t most) {
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const std::string& candidate : names) {
    const bool is_part = !name.empty() && candidate.find(name) != std::string::npos;
    const size_t distance = is_part ? 1 : distance_to(name, candidate);
    if (distance <= std::max<size_t>(2, std::max(name.size(), candidate.size()) / 3)) {
      ranked.emplace_back(distance, candidate);
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (ranked.size() > most) ranked.resize(most);
  std::vector<std::string> result;
  result.reserve(ranked.size());
  for (auto& [distance, candidate] : ranked) result.push_back(std::move(candidate));
  return result;
}

std::string suggestion(std::string_view name, std::span<const std::string> names) {
  const std::vector<std::string> near = nearest_names(name, names);
  if (near.empty()) return "; legal: " + join(names);
  std::string text = "; did you mean " + near.front();
  for (size_t i = 1; i < near.size(); ++i) text += (i + 1 == near.size() ? " or " : ", ") + near[i];
  return text + "?";
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

}  // namespace adjoin
