#include "adjoin/tensor/weights.h"

#include "adjoin/core/error.h"

namespace adjoin {

void Weights::set(std::string name, torch::Tensor value) {
  tensors_.insert_or_assign(std::move(name), std::move(value));
}

const torch::Tensor& Weights::at(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    throw Error(ErrorKind::kInternal, "no tensor named " + std::string(name));
  }
  return found->second;
}

torch::Tensor Weights::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? torch::Tensor() : found->second;
}

void Weights::erase(std::string_view name) {
  if (const auto found = tensors_.find(name); found != tensors_.end()) tensors_.erase(found);
}

Weights Weights::to(torch::Device device, torch::ScalarType dtype) const {
  Weights moved;
  for (const auto& [name, tensor] : tensors_) {
    moved.set(name, tensor.detach().to(device, dtype));
  }
  return moved;
}

}  // namespace adjoin
