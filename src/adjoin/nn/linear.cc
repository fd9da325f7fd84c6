#include "adjoin/nn/linear.h"

namespace adjoin::nn {
namespace {

/// The one matrix that a view with an axis of groups stands for.
torch::Tensor joined(const torch::Tensor& weight, int64_t in_features) {
  if (weight.dim() == 2) return weight;
  return weight.size(2) == in_features ? weight.flatten(0, 1) : weight.flatten(1, 2);
}

torch::Tensor joined(const torch::Tensor& vector) {
  return vector.defined() && vector.dim() > 1 ? vector.flatten() : vector;
}

}  // namespace

torch::Tensor linear(const Weights& weights, const std::string& prefix, const torch::Tensor& x) {
  return torch::linear(x, joined(weights.at(prefix + "weight"), x.size(-1)),
                       joined(weights.find(prefix + "bias")));
}

torch::Tensor layer_norm(const Weights& weights, const std::string& prefix, const torch::Tensor& x,
                         double eps) {
  const auto weight = joined(weights.at(prefix + "weight"));
  // Autocast hands over bfloat16; statistics and the residual stream stay as wide as the weights.
  return torch::layer_norm(x.to(weight.scalar_type()), {weight.size(0)}, weight,
                           joined(weights.at(prefix + "bias")), eps);
}

}  // namespace adjoin::nn
