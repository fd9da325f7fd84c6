#pragma once

// How alike two rankings are, and how sure one can be of it.

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace adjoin::proxy {

/// 1 for the smallest; equal ones share the mean of their ranks.
std::vector<double> average_ranks(std::span<const double> values);

/// Pearson's correlation; NaN where one side is constant.
double pearson(std::span<const double> x, std::span<const double> y);

/// Pearson's correlation of average ranks.
double spearman(std::span<const double> x, std::span<const double> y);

/// Kendall's tau-b, (concordant - discordant) / sqrt((pairs - ties in x) (pairs - ties in y)).
double kendall(std::span<const double> x, std::span<const double> y);

/// Spearman's correlation of x and y when what both have to do with z is taken out.
double partial_spearman(std::span<const double> x, std::span<const double> y,
                        std::span<const double> z);

/// What is lost by trusting a score: the largest truth less the largest among the k with the
/// highest scores.
double top_k_regret(std::span<const double> score, std::span<const double> truth, size_t k);

/// The 2.5th and 97.5th percentile of a statistic over samples of the rows drawn with replacement.
/// `statistic` gets row numbers; draws where it is NaN are left out.
std::pair<double, double> bootstrap_interval(
    size_t rows, const std::function<double(const std::vector<size_t>&)>& statistic, uint64_t seed,
    int draws = 1000);

}  // namespace adjoin::proxy
