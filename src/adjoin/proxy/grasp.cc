#include "adjoin/proxy/grasp.h"

namespace adjoin::proxy {

double grasp(Probe& probe) {
  const Weights leaves = probe.leaves();
  std::vector<torch::Tensor> weights;
  for (const TensorInfo& info : probe.subject().tensors) {
    if (is_layer_weight(info)) weights.push_back(leaves.at(info.name));
  }
  nn::Context context;
  context.is_differentiated_twice = true;
  const auto loss = mean_loss(probe.subject(), leaves, probe.batches()[0], context);
  const auto gradients = torch::autograd::grad({loss}, weights, {}, /*retain_graph=*/true,
                                               /*create_graph=*/true);
  torch::Tensor along;  // g . stop(g), whose gradient is H g
  for (const torch::Tensor& gradient : gradients) {
    const auto part = (gradient * gradient.detach()).sum();
    along = along.defined() ? along + part : part;
  }
  const auto products = torch::autograd::grad({along}, weights, {}, /*retain_graph=*/false,
                                              /*create_graph=*/false, /*allow_unused=*/true);
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!products[i].defined()) continue;
    sum -= (weights[i].detach() * products[i]).sum(torch::kFloat64).item<double>();
  }
  return sum;
}

}  // namespace adjoin::proxy
