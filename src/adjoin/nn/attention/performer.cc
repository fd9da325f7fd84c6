#include "adjoin/nn/attention/performer.h"

#include <cmath>

#include "adjoin/tensor/device.h"
#include "adjoin/tensor/widened.h"

namespace adjoin::nn {

torch::Tensor positive_features(const torch::Tensor& x, const torch::Tensor& w) {
  const auto half_norm = x.square().sum(-1, /*keepdim=*/true) / 2;  // (B, N, 1)
  const auto projected = torch::matmul(x, w.t());                   // (B, N, m)
  return torch::exp(projected - half_norm) / std::sqrt(static_cast<double>(w.size(0)));
}

torch::Tensor performer(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                        const torch::Tensor& w, double eps) {
  const Autocast exact(q.device(), false);  // exp of a bfloat16 product is wrong by several percent
  const auto features = widened(w);
  const auto qf = positive_features(widened(q), features);                // (B, N, m)
  const auto kf = positive_features(widened(k), features);                // (B, N, m)
  const auto norm = torch::matmul(qf, kf.sum(1).unsqueeze(-1));           // (B, N, 1)
  const auto values = torch::matmul(kf.transpose(1, 2), widened(v));      // (B, m, d)
  return (torch::matmul(qf, values) / (norm + eps)).to(v.scalar_type());  // (B, N, d)
}

}  // namespace adjoin::nn
