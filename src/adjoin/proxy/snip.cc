#include "adjoin/proxy/snip.h"

namespace adjoin::proxy {
namespace {

double saliency(const Pull& pull) {
  return (pull.value * pull.gradient).abs().sum(torch::kFloat64).item<double>();
}

}  // namespace

double snip(Probe& probe) {
  double sum = 0;
  for (const Pull& pull : probe.pulls()) sum += saliency(pull);
  return sum;
}

double snip_weights(Probe& probe) {
  double sum = 0;
  for (const Pull& pull : probe.pulls()) {
    if (is_layer_weight(*pull.info)) sum += saliency(pull);
  }
  return sum;
}

}  // namespace adjoin::proxy
