#pragma once

// A network's tensors by name. No object owns a parameter: clone, move, slice and average are
// operations on the bag. A small network's Weights are views of a large one's.

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adjoin/tensor/torch.h"

namespace adjoin {

/// Tensors in an order, as files hold them.
using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

class Weights {
 public:
  using Map = std::map<std::string, torch::Tensor, std::less<>>;

  void set(std::string name, torch::Tensor value);

  /// Throws Error(kInternal) naming the tensor when it is absent.
  const torch::Tensor& at(std::string_view name) const;

  /// The tensor, or an undefined one when it is absent.
  torch::Tensor find(std::string_view name) const;

  void erase(std::string_view name);
  size_t size() const { return tensors_.size(); }
  Map::const_iterator begin() const { return tensors_.begin(); }
  Map::const_iterator end() const { return tensors_.end(); }

  /// The tensors on a device and in a floating type, without gradients. Those that already are so
  /// are shared, the others copied.
  Weights to(torch::Device device, torch::ScalarType dtype) const;

 private:
  Map tensors_;
};

}  // namespace adjoin
