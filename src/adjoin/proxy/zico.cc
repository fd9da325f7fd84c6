#include "adjoin/proxy/zico.h"

#include <cmath>

namespace adjoin::proxy {

double zico(Probe& probe) {
  const size_t batches = probe.batches().size();
  double sum = 0;
  for (size_t k = 0; k < probe.pulls(0).size(); ++k) {
    if (!is_layer_weight(*probe.pulls(0)[k].info)) continue;
    std::vector<torch::Tensor> sizes;
    for (size_t b = 0; b < batches; ++b) {
      sizes.push_back(probe.pulls(b)[k].gradient.abs().to(torch::kFloat64));
    }
    const auto all = torch::stack(sizes);
    const auto mean = all.mean(0);
    const auto deviation = all.std(0, /*unbiased=*/false);
    const auto is_moving = deviation > 0;  // what never changes says nothing
    const double ratio =
        torch::where(is_moving, mean / deviation, torch::zeros_like(mean)).sum().item<double>();
    if (ratio > 0) sum += std::log(ratio);
  }
  return sum;
}

}  // namespace adjoin::proxy
