#pragma once

// For layers with a backward pass of their own.

#include "adjoin/tensor/torch.h"

namespace adjoin::nn {

/// How a function of autograd is handed a tensor that may be undefined.
inline TorchOptional<torch::Tensor> optional(const torch::Tensor& tensor) {
  return tensor.defined() ? TorchOptional<torch::Tensor>(tensor) : TorchOptional<torch::Tensor>();
}

inline torch::Tensor or_undefined(const TorchOptional<torch::Tensor>& tensor) {
  return tensor ? *tensor : torch::Tensor();
}

/// The gradient of `output` for each input, undefined for those that need none. It can be
/// differentiated itself: for a backward pass that runs while gradients are recorded, with the
/// output computed again by LibTorch's own functions.
inline torch::autograd::variable_list differentiable_gradients(
    const torch::Tensor& output, const torch::autograd::variable_list& inputs,
    const torch::Tensor& grad_output) {
  const auto has_gradient = [](const torch::Tensor& input) {
    return input.defined() && input.requires_grad();
  };
  torch::autograd::variable_list wanted;
  std::copy_if(inputs.begin(), inputs.end(), std::back_inserter(wanted), has_gradient);
  const auto grads = torch::autograd::grad({output}, wanted, {grad_output}, /*retain_graph=*/true,
                                           /*create_graph=*/true, /*allow_unused=*/true);
  torch::autograd::variable_list result;
  auto next = grads.begin();
  for (const torch::Tensor& input : inputs) {
    result.push_back(has_gradient(input) ? *next++ : torch::Tensor());
  }
  return result;
}

}  // namespace adjoin::nn
