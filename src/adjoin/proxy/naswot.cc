#include "adjoin/proxy/naswot.h"

namespace adjoin::proxy {

double naswot(Probe& probe) {
  const torch::NoGradGuard no_grad;
  torch::Tensor kernel;
  for (const torch::Tensor& entering :
       probe.subject().activations(probe.subject().weights, probe.batches()[0].images)) {
    const auto on = (entering.flatten(1) > 0).to(torch::kFloat64);  // (B, tokens x units)
    const auto off = 1 - on;
    const auto part = on.matmul(on.t()) + off.matmul(off.t());
    kernel = kernel.defined() ? kernel + part : part;
  }
  return std::get<1>(torch::slogdet(kernel)).item<double>();
}

}  // namespace adjoin::proxy
