#include "adjoin/nn/mlp.h"

#include "adjoin/nn/linear.h"

namespace adjoin::nn {

torch::Tensor mlp(const Weights& weights, const std::string& prefix, const torch::Tensor& x,
                  const Context& context) {
  auto hidden = torch::gelu(linear(weights, prefix + "fc1.", x));  // (B, N, hidden)
  hidden = dropout(hidden, context.dropout, context);
  return dropout(linear(weights, prefix + "fc2.", hidden), context.dropout, context);
}

}  // namespace adjoin::nn
