#include "adjoin/proxy/fisher.h"

namespace adjoin::proxy {
namespace {

/// The tensors of one layer.
struct Layer {
  torch::Tensor weight;
  torch::Tensor bias;  // undefined where there is none
};

std::vector<Layer> layers_of(const Subject& subject, const Weights& leaves) {
  std::vector<Layer> layers;
  for (const TensorInfo& info : subject.tensors) {
    if (!is_layer_weight(info)) continue;
    const std::string prefix = info.name.substr(0, info.name.size() - sizeof("weight") + 1);
    layers.push_back({leaves.at(info.name), leaves.find(prefix + "bias")});
  }
  return layers;
}

/// Output channels; of a circulant layer, whose channels share their weights, blocks of them.
int64_t units_of(const Layer& layer) {
  const int64_t rows = layer.weight.size(0);
  const bool is_shared = layer.bias.defined() && layer.bias.numel() != rows;
  return is_shared ? rows * layer.weight.size(1) : rows;
}

}  // namespace

double fisher(Probe& probe) {
  const Weights leaves = probe.leaves();
  const std::vector<Layer> layers = layers_of(probe.subject(), leaves);
  std::vector<torch::Tensor> inputs;
  for (const Layer& layer : layers) {
    inputs.push_back(layer.weight);
    if (layer.bias.defined()) inputs.push_back(layer.bias);
  }
  const Sample& batch = probe.batches()[0];
  const auto images = static_cast<double>(batch.images.size(0));
  std::vector<torch::Tensor> squares(layers.size());
  for (int64_t i = 0; i < batch.images.size(0); ++i) {
    const Sample one{batch.images.narrow(0, i, 1), batch.labels.narrow(0, i, 1)};
    const auto loss = mean_loss(probe.subject(), leaves, one) / images;
    const auto gradients =
        torch::autograd::grad({loss}, inputs, {}, false, false, /*allow_unused=*/true);
    size_t next = 0;
    for (size_t k = 0; k < layers.size(); ++k) {
      // The sum over tokens of a channel's activation x gradient is what its row of weights and its
      // bias have by value x gradient.
      const auto product = [](const torch::Tensor& value, const torch::Tensor& gradient) {
        return gradient.defined() ? (value.detach() * gradient).to(torch::kFloat64)
                                  : torch::zeros_like(value, torch::kFloat64);
      };
      const int64_t units = units_of(layers[k]);
      auto channels = product(layers[k].weight, gradients[next++]).view({units, -1}).sum(1);
      if (layers[k].bias.defined()) {
        channels += product(layers[k].bias, gradients[next++]).view({units, -1}).sum(1);
      }
      squares[k] = squares[k].defined() ? squares[k] + channels.square() : channels.square();
    }
  }
  double sum = 0;
  for (size_t k = 0; k < layers.size(); ++k) {
    const auto weights =
        static_cast<double>(layers[k].weight.numel()) / static_cast<double>(units_of(layers[k]));
    sum += weights * squares[k].sum().item<double>() / images / 2;
  }
  return sum;
}

}  // namespace adjoin::proxy
