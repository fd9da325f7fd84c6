#include "adjoin/proxy/synflow.h"

namespace adjoin::proxy {
namespace {

double saliency(const std::vector<Pull>& pulls) {
  double sum = 0;
  for (const Pull& pull : pulls) sum += (pull.value * pull.gradient).abs().sum().item<double>();
  return sum;
}

}  // namespace

double synflow(Probe& probe) { return saliency(probe.flow(/*has_norms=*/true)); }

double synflow_no_norm(Probe& probe) { return saliency(probe.flow(/*has_norms=*/false)); }

}  // namespace adjoin::proxy
