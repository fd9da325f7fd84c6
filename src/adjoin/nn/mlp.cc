#include "adjoin/nn/mlp.h"

#include "adjoin/nn/gelu.h"

namespace adjoin::nn {

Branch mlp(const Weights& weights, const std::string& prefix, const torch::Tensor& x,
           const Context& context) {
  const auto hidden = linear_gelu(weights, prefix + "fc1.", x);  // (B, N, hidden)
  return projected(weights, prefix + "fc2.", dropout(hidden, context.dropout, context), context);
}

}  // namespace adjoin::nn
