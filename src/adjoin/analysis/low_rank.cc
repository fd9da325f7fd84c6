#include "adjoin/analysis/low_rank.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>

#include "adjoin/analysis/token_rank.h"

namespace adjoin::analysis {
namespace {

/// Share of `columns` w with |approximation w - P w| <= epsilon |P w|.
double success(const torch::Tensor& p, const torch::Tensor& projection, const torch::Tensor& w,
               double epsilon) {
  const auto exact = torch::matmul(p, w);
  const auto short_way =
      torch::matmul(torch::matmul(p, projection.t()), torch::matmul(projection, w));
  const auto is_near = (short_way - exact).norm(2, 0) <= epsilon * exact.norm(2, 0);
  return is_near.to(torch::kFloat64).mean().item<double>();
}

}  // namespace

int64_t projected_tokens(int64_t tokens, double epsilon) {
  return static_cast<int64_t>(std::ceil(5 * std::log(static_cast<double>(tokens)) /
                                        (epsilon * epsilon - epsilon * epsilon * epsilon)));
}

LowRankRow low_rank(const std::string& layer, const torch::Tensor& attention, double epsilon,
                    int64_t trials, uint64_t seed) {
  const auto first = attention.dim() == 5 ? attention[0][0] : attention[0];
  const auto p = first.to(torch::kFloat64);  // (H, N, N)
  const int64_t tokens = p.size(1);
  LowRankRow row;
  row.layer = layer;
  row.tokens = tokens;
  row.epsilon = epsilon;
  row.k = projected_tokens(tokens, epsilon);
  auto rng = at::detail::createCPUGenerator(seed);
  const auto deviation = 1 / std::sqrt(static_cast<double>(row.k));
  const auto draw = [&](int64_t rows) {
    return torch::randn({rows, tokens}, rng, torch::kFloat64).to(p.device());
  };
  const auto heads = static_cast<double>(p.size(0) * trials);
  const auto kept = static_cast<int64_t>(std::ceil(std::log2(static_cast<double>(tokens))));
  for (int64_t h = 0; h < p.size(0); ++h) {
    for (int64_t t = 0; t < trials; ++t) {
      const auto projection = draw(row.k) * deviation;
      const auto w = draw(1).t();
      row.success_gaussian += success(p[h], projection, w, epsilon) / heads;
      row.success_positive += success(p[h], projection, w.abs(), epsilon) / heads;
    }
    const auto squares = singular_values(p[h]).square();
    const auto held = squares.cumsum(0) / squares.sum();
    row.rank_99.push_back((held < 0.99).sum().item<int64_t>() + 1);
    const auto index = std::min(kept, tokens) - 1;
    row.svd_error.push_back(std::sqrt(std::max(0.0, 1 - held[index].item<double>())));
  }
  return row;
}

}  // namespace adjoin::analysis
