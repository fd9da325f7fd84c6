#include "adjoin/models/init.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>

#include "adjoin/core/hash.h"

namespace adjoin::models {
namespace {

/// (1, positions, channels), computed in float64 and rounded once, as in the official code.
torch::Tensor sinusoid(at::IntArrayRef shape) {
  const int64_t channels = shape[2];
  const auto options = torch::TensorOptions().dtype(torch::kFloat64);
  const auto position = torch::arange(shape[1], options).unsqueeze(1);  // (N, 1)
  const auto channel = torch::arange(channels, options);
  const auto exponent = channel.div(2, "floor") * 2 / static_cast<double>(channels);
  const auto angle = position / torch::pow(10000.0, exponent);  // (N, C)
  const auto is_odd = channel.remainder(2) == 1;
  return torch::where(is_odd, angle.cos(), angle.sin()).unsqueeze(0).to(torch::kFloat32);
}

/// Orthonormal rows (or columns, where there are more rows), uniformly distributed.
torch::Tensor orthogonal(at::IntArrayRef shape, double scale, const torch::Generator& rng) {
  const int64_t rows = shape[0];
  const int64_t cols = shape[1];
  auto gaussian = torch::empty({std::max(rows, cols), std::min(rows, cols)}).normal_(0, 1, rng);
  auto [q, r] = torch::linalg_qr(gaussian);
  q = q * r.diagonal().sign();  // makes the distribution uniform
  return (rows < cols ? q.t() : q).contiguous() * scale;
}

}  // namespace

torch::Tensor init_tensor(const TensorInfo& info, uint64_t seed) {
  const auto rng = at::detail::createCPUGenerator(splitmix64(splitmix64(seed) ^ fnv1a(info.name)));
  const std::vector<int64_t> shape = info.shape();
  const double scale = info.init.scale;
  switch (info.init.kind) {
    case InitKind::kZeros: return torch::zeros(shape);
    case InitKind::kOnes: return torch::ones(shape);
    case InitKind::kNormal: return torch::empty(shape).normal_(0, scale, rng).clamp_(-2, 2);
    case InitKind::kUniform: return torch::empty(shape).uniform_(-scale, scale, rng);
    case InitKind::kSinusoid: return sinusoid(shape);
    case InitKind::kOrthogonal: return orthogonal(shape, scale, rng);
  }
  return {};
}

Weights init(const ModelSpec& spec, uint64_t seed) {
  Weights weights;
  for (const TensorInfo& info : tensors(spec)) weights.set(info.name, init_tensor(info, seed));
  return weights;
}

void require_gradients(const ModelSpec& spec, Weights& weights) {
  for (const TensorInfo& info : tensors(spec)) {
    torch::Tensor tensor = weights.at(info.name);
    tensor.requires_grad_(info.is_trained);
  }
}

}  // namespace adjoin::models
