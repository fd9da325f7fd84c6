#include "adjoin/proxy/grad_norm.h"

#include <cmath>

namespace adjoin::proxy {

double grad_norm(Probe& probe) {
  double squares = 0;
  for (const Pull& pull : probe.pulls()) {
    squares += pull.gradient.square().sum(torch::kFloat64).item<double>();
  }
  return std::sqrt(squares);
}

double grad_norm_layers(Probe& probe) {
  double sum = 0;
  for (const Pull& pull : probe.pulls()) {
    if (!is_layer_weight(*pull.info)) continue;
    sum += std::sqrt(pull.gradient.square().sum(torch::kFloat64).item<double>());
  }
  return sum;
}

}  // namespace adjoin::proxy
