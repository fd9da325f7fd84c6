#include "adjoin/proxy/dss.h"

namespace adjoin::proxy {
namespace {

double singular_sum(const torch::Tensor& matrix) {
  return torch::linalg_svdvals(matrix).sum().item<double>();
}

}  // namespace

double dss(Probe& probe) {
  double sum = 0;
  for (const Pull& pull : probe.flow(/*has_norms=*/true)) {
    if (!is_layer_weight(*pull.info) || pull.value.dim() != 2) continue;  // a convolution embeds
    const bool is_attention = pull.info->name.find(".attn.") != std::string::npos;
    sum += is_attention ? singular_sum(pull.value) * singular_sum(pull.gradient)
                        : (pull.value * pull.gradient).abs().sum().item<double>();
  }
  return sum;
}

}  // namespace adjoin::proxy
