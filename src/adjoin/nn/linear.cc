#include "adjoin/nn/linear.h"

namespace adjoin::nn {

torch::Tensor linear(const Weights& weights, const std::string& prefix, const torch::Tensor& x) {
  return torch::linear(x, weights.at(prefix + "weight"), weights.find(prefix + "bias"));
}

torch::Tensor layer_norm(const Weights& weights, const std::string& prefix, const torch::Tensor& x,
                         double eps) {
  const torch::Tensor& weight = weights.at(prefix + "weight");
  // Autocast hands over bfloat16; statistics and the residual stream stay as wide as the weights.
  return torch::layer_norm(x.to(weight.scalar_type()), {weight.size(0)}, weight,
                           weights.at(prefix + "bias"), eps);
}

}  // namespace adjoin::nn
