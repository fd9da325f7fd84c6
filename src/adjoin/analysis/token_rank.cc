#include "adjoin/analysis/token_rank.h"

#include <ATen/Parallel.h>

namespace adjoin::analysis {

torch::Tensor residual(const torch::Tensor& x) { return x - x.mean(-2, /*keepdim=*/true); }

torch::Tensor column_norm(const torch::Tensor& x) {
  return x.abs().sum(-2).amax(-1).to(torch::kFloat64);
}

torch::Tensor row_norm(const torch::Tensor& x) {
  return x.abs().sum(-1).amax(-1).to(torch::kFloat64);
}

torch::Tensor composite_norm(const torch::Tensor& x) {
  return torch::sqrt(column_norm(x) * row_norm(x));
}

torch::Tensor frobenius(const torch::Tensor& x) {
  return x.flatten(-2).norm(2, -1).to(torch::kFloat64);
}

torch::Tensor token_cosine(const torch::Tensor& x) {
  const auto length = x.norm(2, -1, /*keepdim=*/true);
  const auto unit = x / length.clamp_min(std::numeric_limits<float>::min());
  const auto sum = unit.sum(-2).to(torch::kFloat64).square().sum(-1);  // of all pairs
  const auto same = unit.to(torch::kFloat64).square().sum({-2, -1});   // of tokens with themselves
  const auto n = static_cast<double>(x.size(-2));
  return (sum - same) / (n * (n - 1));
}

namespace {

/// Of symmetric matrices (.., K, K), several at a time: LibTorch takes them one after the other.
torch::Tensor eigenvalues(const torch::Tensor& x) {
  if (!x.is_cpu() || x.dim() == 2) return torch::linalg_eigvalsh(x);
  const auto flat = x.flatten(0, -3);
  auto found = torch::empty({flat.size(0), flat.size(1)}, x.options());
  at::parallel_for(0, flat.size(0), 1, [&](int64_t begin, int64_t end) {
    const torch::NoGradGuard no_grad;
    for (int64_t i = begin; i < end; ++i) found[i].copy_(torch::linalg_eigvalsh(flat[i]));
  });
  auto shape = x.sizes().vec();
  shape.pop_back();
  return found.view(shape);
}

}  // namespace

torch::Tensor singular_values(const torch::Tensor& x_in) {
  const auto size = x_in.to(torch::kFloat64)
                        .abs()
                        .amax({-2, -1}, true)
                        .clamp_min(std::numeric_limits<double>::min());
  const auto x = x_in.to(torch::kFloat64) / size;  // squares of large or small values stay numbers
  const bool is_tall = x.size(-2) > x.size(-1);
  const auto product =
      is_tall ? torch::matmul(x.transpose(-2, -1), x) : torch::matmul(x, x.transpose(-2, -1));
  return eigenvalues(product).clamp_min(0).sqrt().flip(-1) * size.squeeze(-1);
}

torch::Tensor effective_rank_of(const torch::Tensor& singular_values) {
  const auto sum = singular_values.sum(-1, /*keepdim=*/true);
  const auto share = singular_values / sum.clamp_min(std::numeric_limits<double>::min());
  return torch::exp(-torch::xlogy(share, share).sum(-1));
}

torch::Tensor effective_rank(const torch::Tensor& x) {
  return effective_rank_of(singular_values(x));
}

}  // namespace adjoin::analysis
