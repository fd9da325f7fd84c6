#include "adjoin/analysis/whole_masses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "adjoin/core/error.h"

namespace adjoin::analysis {
namespace {

constexpr double kMostWhole = 0x1p53;  // up to here doubles hold every whole number
constexpr int kBitsOfSum = 60;
constexpr double kImbalance = 1e-9;

double sum_of(const std::vector<double>& masses) {
  return std::accumulate(masses.begin(), masses.end(), 0.0);
}

bool are_whole(const std::vector<double>& masses) {
  return sum_of(masses) <= kMostWhole && std::all_of(masses.begin(), masses.end(), [](double mass) {
           return mass == std::floor(mass);
         });
}

std::vector<int64_t> counted(const std::vector<double>& masses, int shift) {
  std::vector<int64_t> result;
  result.reserve(masses.size());
  for (const double mass : masses) result.push_back(std::llround(std::ldexp(mass, shift)));
  return result;
}

int64_t sum_of(const std::vector<int64_t>& amounts) {
  return std::accumulate(amounts.begin(), amounts.end(), int64_t{0});
}

/// Amounts in the same proportions whose sum is `total`: rounded down, and what is left goes to
/// those that lost most.
void scale_to(int64_t total, std::vector<int64_t>& amounts) {
  using Wide = __int128;  // products of two numbers below 2^62
  const int64_t sum = sum_of(amounts);
  std::vector<int64_t> lost;
  for (int64_t& amount : amounts) {
    const Wide product = static_cast<Wide>(amount) * total;
    amount = static_cast<int64_t>(product / sum);
    lost.push_back(static_cast<int64_t>(product % sum));
  }
  std::vector<size_t> order(amounts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lost[a] > lost[b]; });
  const auto left = static_cast<size_t>(total - sum_of(amounts));  // below the count of losers
  for (size_t i = 0; i < left; ++i) ++amounts[order[i]];
}

}  // namespace

double WholeMasses::mass(int64_t amount) const {
  return std::ldexp(static_cast<double>(amount), -shift);
}

WholeMasses whole_masses(const std::vector<double>& from, const std::vector<double>& to) {
  const double from_sum = sum_of(from);
  const double to_sum = sum_of(to);
  WholeMasses result;
  const bool is_whole = are_whole(from) && are_whole(to);
  if (!is_whole) result.shift = kBitsOfSum - std::ilogb(std::max(from_sum, to_sum));
  result.from = counted(from, result.shift);
  result.to = counted(to, result.shift);
  const int64_t from_total = sum_of(result.from);
  const int64_t to_total = sum_of(result.to);
  const int64_t total = std::max(from_total, to_total);
  if (from_total == to_total) return result;
  const auto difference = static_cast<double>(std::abs(from_total - to_total));
  if (is_whole || difference > kImbalance * static_cast<double>(total)) {
    throw Error(ErrorKind::kData,
                fmt::format("the masses of from sum to {}, those of to to {}; {}", from_sum, to_sum,
                            is_whole ? "sums of whole masses must be equal"
                                     : "they must agree within 1e-9 of it"));
  }
  scale_to(total, from_total < total ? result.from : result.to);
  return result;
}

}  // namespace adjoin::analysis
