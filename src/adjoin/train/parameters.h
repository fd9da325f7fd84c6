#pragma once

// What training changes, laid out in one buffer. The tensors a forward pass reads are leaf views of
// it and their gradients are views of a second one, so that an optimizer step, an average, a norm
// or a sum over processes is one operation on one long vector. The leaves of a network inside the
// large one are slices of the same values, and autograd adds their gradients into the same slices
// of the gradients: nothing is made in the size of the large network.

#include <string>
#include <vector>

#include "adjoin/spec/derive.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::train {

/// Neighbours in the buffer that are optimized alike.
struct ParameterGroup {
  int64_t begin = 0;
  int64_t end = 0;
  double lr_scale = 1;
  bool has_decay = false;
};

/// A network that is trained inside the large one's tensors.
struct InnerNetwork {
  std::string name;  ///< "small-4"; tensors of its own are stored under it
  Derived derived;
  Weights own;              ///< start values of the tensors that are no slice of the large network
  double own_lr_scale = 1;  ///< of these
};

class Parameters {
 public:
  /// Copies the start values to the device, in `dtype`. `layer_decay`: every block below the head
  /// has a learning rate smaller by this factor (Clark et al. 2020; as timm counts layers).
  Parameters(const ModelSpec& spec, const Weights& start, const std::vector<InnerNetwork>& inner,
             torch::Device device, torch::ScalarType dtype, double layer_decay = 1);

  /// Of a network, the large one first: views of values(), requiring gradients, and fixed tensors.
  const Weights& weights(size_t network = 0) const { return networks_[network].weights; }
  size_t networks() const { return networks_.size(); }

  /// A network's tensors with another buffer of the same layout (an average) in the place of
  /// values(); no gradients.
  Weights weights_in(const torch::Tensor& flat, size_t network = 0) const;

  torch::Tensor values() const { return values_; }
  torch::Tensor gradients() const { return gradients_; }
  const std::vector<ParameterGroup>& groups() const { return groups_; }

  /// The views that require gradients, network after network, in the order of tensors(spec).
  const std::vector<torch::Tensor>& leaves() const { return leaves_; }

  /// The buffer's tensors by name: "blocks.0.norm1.weight", and a network's own with its name
  /// before, "small-4.blocks.0.norm1.weight".
  NamedTensors tensors_in(const torch::Tensor& flat) const;

  /// Tensors that training leaves as they are, named likewise.
  NamedTensors fixed() const;

 private:
  struct Network {
    std::string prefix;  // of tensors of its own
    std::vector<TensorInfo> infos;
    double lr_scale = 1;             // of tensors of its own
    std::optional<Derived> derived;  // not of the large one
    Weights fixed;                   // of its own
    Weights weights;

    bool is_own(size_t tensor) const;
  };
  struct Slot {
    size_t network = 0;
    TensorInfo info;
    int64_t begin = 0;
    double lr_scale = 1;
  };

  void add_slots(size_t network, double layer_decay);
  void lay_out();
  void add_leaves(size_t network);
  torch::Tensor view(const torch::Tensor& flat, const Slot& slot) const;

  std::vector<Network> networks_;
  std::vector<Slot> slots_;  // network after network, in the order of tensors(spec)
  std::vector<ParameterGroup> groups_;
  int64_t length_ = 0;
  torch::Tensor values_;
  torch::Tensor gradients_;
  std::vector<torch::Tensor> leaves_;
};

/// How far each tensor's layer is below the head: 0 for what follows the last block.
std::vector<int64_t> layers_below_head(const std::vector<TensorInfo>& infos);

}  // namespace adjoin::train
