#include "adjoin/proxy/probe.h"

#include "adjoin/cost/cost.h"
#include "adjoin/models/forward.h"
#include "adjoin/nn/block.h"
#include "adjoin/nn/linear.h"

namespace adjoin::proxy {
namespace {

/// What enters the GELU of every block.
std::vector<torch::Tensor> activations_of(const ModelSpec& spec, const Weights& weights,
                                          const torch::Tensor& images) {
  const std::vector<PlacedBlock> placed = placed_blocks(spec);
  std::vector<torch::Tensor> found;
  nn::Context context;
  context.block = [&](size_t block, const torch::Tensor& x) {
    const PlacedBlock& here = placed[block];
    nn::Stream mixed = nn::attend(here, spec.norm_eps, weights, {x}, {});
    mixed = {nn::settled(mixed)};
    found.push_back(nn::linear(weights, here.name + ".mlp.fc1.",
                               nn::read_by_mlp(here, spec.norm_eps, weights, mixed, {})));
    return nn::settled(nn::feed_forward(here, spec.norm_eps, weights, std::move(mixed), {}));
  };
  models::forward(spec, weights, images, context);
  return found;
}

/// Tensors that training changes, with the gradients of a number.
std::vector<Pull> pulls_of(const Subject& subject, const Weights& leaves,
                           const torch::Tensor& number) {
  std::vector<Pull> pulls;
  std::vector<torch::Tensor> inputs;
  for (const TensorInfo& info : subject.tensors) {
    if (!info.is_trained) continue;
    inputs.push_back(leaves.at(info.name));
    pulls.push_back({&info, inputs.back().detach(), {}});
  }
  const auto gradients = torch::autograd::grad({number}, inputs, {}, /*retain_graph=*/false,
                                               /*create_graph=*/false, /*allow_unused=*/true);
  for (size_t i = 0; i < pulls.size(); ++i) {
    pulls[i].gradient = gradients[i].defined() ? gradients[i] : torch::zeros_like(pulls[i].value);
  }
  return pulls;
}

}  // namespace

Subject subject_of(const ModelSpec& spec, Weights weights) {
  const Cost counted = cost(spec);
  Subject subject;
  subject.tensors = tensors(spec);
  subject.weights = std::move(weights);
  subject.params = counted.params;
  subject.macs = counted.macs.total();
  subject.logits = [spec](const Weights& w, const torch::Tensor& images,
                          const nn::Context& context) {
    return models::forward(spec, w, images, context).logits();
  };
  subject.activations = [spec](const Weights& w, const torch::Tensor& images) {
    return activations_of(spec, w, images);
  };
  return subject;
}

bool is_layer_weight(const TensorInfo& info) {
  return info.is_trained && info.axes.size() >= 2 && info.name.ends_with(".weight");
}

torch::Tensor mean_loss(const Subject& subject, const Weights& weights, const Sample& sample,
                        const nn::Context& context) {
  return torch::nn::functional::cross_entropy(subject.logits(weights, sample.images, context),
                                              sample.labels);
}

Probe::Probe(Subject subject, std::vector<Sample> batches)
    : subject_(std::move(subject)), batches_(std::move(batches)) {}

Weights Probe::leaves() const {
  Weights result;
  for (const TensorInfo& info : subject_.tensors) {
    auto leaf = subject_.weights.at(info.name).detach();
    result.set(info.name, info.is_trained ? leaf.requires_grad_(true) : leaf);
  }
  return result;
}

const std::vector<Pull>& Probe::pulls(size_t batch) {
  auto [place, is_new] = pulls_.try_emplace(batch);
  if (is_new) {
    const Weights weights = leaves();
    place->second = pulls_of(subject_, weights, mean_loss(subject_, weights, batches_[batch]));
  }
  return place->second;
}

const std::vector<Pull>& Probe::flow(bool has_norms) {
  auto [place, is_new] = flows_.try_emplace(has_norms);
  if (is_new) {
    Weights positive;
    for (const TensorInfo& info : subject_.tensors) {
      auto value = subject_.weights.at(info.name).detach().to(torch::kFloat64);
      positive.set(info.name, info.is_trained ? value.abs().requires_grad_(true) : value);
    }
    const auto one = torch::ones_like(batches_[0].images.narrow(0, 0, 1)).to(torch::kFloat64);
    nn::Context context;
    context.has_norms = has_norms;
    place->second = pulls_of(subject_, positive, subject_.logits(positive, one, context).sum());
  }
  return place->second;
}

}  // namespace adjoin::proxy
