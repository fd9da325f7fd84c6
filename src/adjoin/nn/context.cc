#include "adjoin/nn/context.h"

namespace adjoin::nn {
namespace {

/// 1 / (1 - rate) with chance 1 - rate, else 0.
torch::Tensor keep_mask(at::IntArrayRef shape, const torch::Tensor& like, double rate,
                        const Context& context) {
  auto mask = torch::empty(shape, like.options().requires_grad(false));
  return mask.bernoulli_(1 - rate, context.rng).div_(1 - rate);
}

}  // namespace

torch::Tensor constant(const Context& context, const std::string& key,
                       const std::function<torch::Tensor()>& make) {
  return context.constants == nullptr ? make() : context.constants->get(key, make);
}

torch::Tensor dropout(const torch::Tensor& x, double rate, const Context& context) {
  if (!context.is_training || rate == 0) return x;
  return x * keep_mask(x.sizes(), x, rate, context);
}

torch::Tensor drop_path(int64_t batch, const torch::Tensor& like, double rate,
                        const Context& context) {
  if (!context.is_training || rate == 0) return {};
  return keep_mask({batch}, like, rate, context);
}

}  // namespace adjoin::nn
