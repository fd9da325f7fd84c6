#pragma once

// The residual stream: a sum that every branch adds to, and that every branch reads through a layer
// norm. A branch is added where the next norm reads the sum, in one pass over memory.

#include <optional>
#include <string>

#include "adjoin/nn/context.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::nn {

/// The tokens of an image in another order; undefined: as they are.
struct TokenOrder {
  torch::Tensor tokens;  ///< (N), int32: the token that stands in a row
  torch::Tensor places;  ///< (N), int32: the row in which a token stands
};

/// What is yet to be added to the stream: scale (value + bias).
struct Branch {
  torch::Tensor value;  ///< (B, N, C)
  torch::Tensor bias;   ///< (C); undefined: 0
  torch::Tensor scale;  ///< (B), of drop-path; undefined: 1
  TokenOrder order;     ///< of the value
};

/// A linear layer that ends a branch, with dropout; its bias is left to whoever adds the branch.
///
/// (B, N, in) -> (B, N, C)
Branch projected(const Weights& weights, const std::string& prefix, const torch::Tensor& x,
                 const Context& context);

struct Stream {
  torch::Tensor sum;  ///< (B, N, C)
  std::optional<Branch> branch = {};
};

/// The sum with the branch.
torch::Tensor settled(const Stream& stream);

/// Adds the branch to the sum and returns the sum's layer norm with `prefix`weight and
/// `prefix`bias, its tokens in an order; the sum itself where the context has no norms.
///
/// (B, N, C)
torch::Tensor next_norm(Stream& stream, const Weights& weights, const std::string& prefix,
                        double eps, const Context& context, const TokenOrder& order = {});

}  // namespace adjoin::nn
