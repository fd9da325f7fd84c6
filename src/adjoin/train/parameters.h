#pragma once

// What training changes, laid out in one buffer. The tensors a forward pass reads are leaf views of
// it and their gradients are views of a second one, so that an optimizer step, an average, a norm
// or a sum over processes is one operation on one long vector.

#include <vector>

#include "adjoin/spec/tensors.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::train {

/// Neighbours in the buffer that are optimized alike.
struct ParameterGroup {
  int64_t begin = 0;
  int64_t end = 0;
  double lr_scale = 1;
  bool has_decay = false;
};

class Parameters {
 public:
  /// Copies the start values to the device, in `dtype`. `layer_decay`: every block below the head
  /// has a learning rate smaller by this factor (Clark et al. 2020; as timm counts layers).
  Parameters(const ModelSpec& spec, const Weights& start, torch::Device device,
             torch::ScalarType dtype, double layer_decay = 1);

  /// Views of values(), requiring gradients, and the network's fixed tensors.
  const Weights& weights() const { return weights_; }

  /// The network's tensors with another buffer of the same layout (an average) in the place of
  /// values(); no gradients.
  Weights weights_in(const torch::Tensor& flat) const;

  torch::Tensor values() const { return values_; }
  torch::Tensor gradients() const { return gradients_; }
  const std::vector<ParameterGroup>& groups() const { return groups_; }

  /// The views that require gradients, in the order of tensors(spec).
  const std::vector<torch::Tensor>& leaves() const { return leaves_; }

 private:
  struct Slot {
    TensorInfo info;
    int64_t begin = 0;
    double lr_scale = 1;
  };

  torch::Tensor view(const torch::Tensor& flat, const Slot& slot) const;

  std::vector<Slot> slots_;  // in the order of tensors(spec)
  std::vector<ParameterGroup> groups_;
  torch::Tensor values_;
  torch::Tensor gradients_;
  Weights weights_;
  std::vector<torch::Tensor> leaves_;
};

/// How far each tensor's layer is below the head: 0 for what follows the last block.
std::vector<int64_t> layers_below_head(const std::vector<TensorInfo>& infos);

}  // namespace adjoin::train
