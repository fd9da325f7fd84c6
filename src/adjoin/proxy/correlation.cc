#include "adjoin/proxy/correlation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "adjoin/core/rng.h"

namespace adjoin::proxy {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Row numbers, the largest value first; equal ones in their order.
std::vector<size_t> falling(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return values[a] > values[b]; });
  return order;
}

}  // namespace

std::vector<double> average_ranks(std::span<const double> values) {
  std::vector<size_t> order = falling(values);
  std::reverse(order.begin(), order.end());
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double mean = static_cast<double>(begin + 1 + end) / 2;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = mean;
    begin = end;
  }
  return ranks;
}

double pearson(std::span<const double> x, std::span<const double> y) {
  const auto count = static_cast<double>(x.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / count;
  const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / count;
  double xx = 0;
  double yy = 0;
  double xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : kNone;
}

double spearman(std::span<const double> x, std::span<const double> y) {
  return pearson(average_ranks(x), average_ranks(y));
}

double kendall(std::span<const double> x, std::span<const double> y) {
  double balance = 0;  // concordant less discordant pairs
  double pairs_x = 0;  // that differ in x
  double pairs_y = 0;
  const auto sign = [](double a) { return a > 0 ? 1 : a < 0 ? -1 : 0; };
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const int a = sign(x[i] - x[j]);
      const int b = sign(y[i] - y[j]);
      balance += a * b;
      pairs_x += a * a;
      pairs_y += b * b;
    }
  }
  return pairs_x > 0 && pairs_y > 0 ? balance / std::sqrt(pairs_x * pairs_y) : kNone;
}

double partial_spearman(std::span<const double> x, std::span<const double> y,
                        std::span<const double> z) {
  const double xy = spearman(x, y);
  const double xz = spearman(x, z);
  const double yz = spearman(y, z);
  const double left = (1 - xz * xz) * (1 - yz * yz);
  return left > 1e-12 ? (xy - xz * yz) / std::sqrt(left) : kNone;
}

double top_k_regret(std::span<const double> score, std::span<const double> truth, size_t k) {
  if (truth.empty()) return kNone;
  const std::vector<size_t> order = falling(score);
  double found = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < std::min(k, order.size()); ++i) found = std::max(found, truth[order[i]]);
  return *std::max_element(truth.begin(), truth.end()) - found;
}

std::pair<double, double> bootstrap_interval(
    size_t rows, const std::function<double(const std::vector<size_t>&)>& statistic, uint64_t seed,
    int draws) {
  Rng rng(stream_key(seed, {0x626f6f74}));
  std::vector<double> values;
  std::vector<size_t> drawn(rows);
  for (int i = 0; i < draws; ++i) {
    for (size_t& row : drawn) row = static_cast<size_t>(rng.below(static_cast<int64_t>(rows)));
    const double value = statistic(drawn);
    if (std::isfinite(value)) values.push_back(value);
  }
  if (values.empty()) return {kNone, kNone};
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
  };
  return {at(0.025), at(0.975)};
}

}  // namespace adjoin::proxy
