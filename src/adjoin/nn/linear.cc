#include "adjoin/nn/linear.h"

namespace adjoin::nn {

torch::Tensor linear(const Weights& weights, const std::string& prefix, const torch::Tensor& x) {
  return torch::linear(x, weights.at(prefix + "weight"), weights.find(prefix + "bias"));
}

torch::Tensor layer_norm(const Weights& weights, const std::string& prefix, const torch::Tensor& x,
                         double eps) {
  const torch::Tensor& weight = weights.at(prefix + "weight");
  return torch::layer_norm(x, {weight.size(0)}, weight, weights.at(prefix + "bias"), eps);
}

}  // namespace adjoin::nn
