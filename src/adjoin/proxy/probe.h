#pragma once

// A network before training, and what several proxies want to know of it. What they share is
// computed once.

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "adjoin/nn/context.h"
#include "adjoin/spec/tensors.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::proxy {

/// A network as a function of its tensors.
struct Subject {
  std::vector<TensorInfo> tensors;
  Weights weights;
  int64_t params = 0;
  int64_t macs = 0;
  /// Logits (B, classes) of images (B, C, H, W).
  std::function<torch::Tensor(const Weights&, const torch::Tensor& images, const nn::Context&)>
      logits;
  /// What enters every activation function, (B, ..) each.
  std::function<std::vector<torch::Tensor>(const Weights&, const torch::Tensor& images)>
      activations;
};

Subject subject_of(const ModelSpec& spec, Weights weights);

/// Images (B, C, H, W) with labels (B).
struct Sample {
  torch::Tensor images;
  torch::Tensor labels;
};

/// A tensor of the network with a gradient.
struct Pull {
  const TensorInfo* info;
  torch::Tensor value;
  torch::Tensor gradient;
};

class Probe {
 public:
  /// At least one batch.
  Probe(Subject subject, std::vector<Sample> batches);

  const Subject& subject() const { return subject_; }
  const std::vector<Sample>& batches() const { return batches_; }

  /// Everything training would change, with the gradient of the mean cross entropy on a batch.
  const std::vector<Pull>& pulls(size_t batch = 0);

  /// The same for the sum of the logits of one image of ones, with all values made positive;
  /// float64.
  const std::vector<Pull>& flow(bool has_norms);

  /// The weights as leaves that require gradients; they share memory with the subject's.
  Weights leaves() const;

 private:
  Subject subject_;
  std::vector<Sample> batches_;
  std::map<size_t, std::vector<Pull>> pulls_;
  std::map<bool, std::vector<Pull>> flows_;
};

/// Whether a tensor is the weight of a linear layer or a convolution.
bool is_layer_weight(const TensorInfo& info);

/// The mean cross entropy, 0-d.
torch::Tensor mean_loss(const Subject& subject, const Weights& weights, const Sample& sample,
                        const nn::Context& context = {});

}  // namespace adjoin::proxy
