#include "adjoin/proxy/jacob_cov.h"

namespace adjoin::proxy {

double jacob_cov(Probe& probe) {
  constexpr double kTiny = 1e-5;
  const auto images = probe.batches()[0].images.detach().clone().requires_grad_(true);
  const auto logits = probe.subject().logits(probe.subject().weights, images, {});
  const auto rows =
      torch::autograd::grad({logits.sum()}, {images})[0].flatten(1).to(torch::kFloat64);
  const auto centred = rows - rows.mean(1, /*keepdim=*/true);
  const auto unit = centred / centred.norm(2, {1}, /*keepdim=*/true);
  const auto values = torch::linalg_eigvalsh(unit.matmul(unit.t())) + kTiny;
  return -(values.log() + values.reciprocal()).sum().item<double>();
}

}  // namespace adjoin::proxy
