#pragma once

// A mixture of small networks: every block is a weighted sum of itself at several compression
// factors (the adjoined-network thesis, equation 3.5). In geometry `kept` a small block has the
// first heads and hidden units of the large one, so the sum over candidates is one pass in which a
// head or unit counts as much as the candidates that have it, together. Heads and units enter the
// stream through one matrix each: the mixture is the large network with the columns of those
// scaled. Nothing of the size of an activation is made, and m candidates cost one pass.

#include <vector>

#include "adjoin/nn/context.h"
#include "adjoin/search/space.h"
#include "adjoin/spec/derive.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::search {

class Mixture {
 public:
  explicit Mixture(const Space& space, torch::Device device = torch::kCPU);

  int64_t blocks() const { return is_legal_.size(0); }
  int64_t candidates() const { return is_legal_.size(1); }

  /// (blocks, candidates), bool: blocks with fewer candidates have none in the last columns.
  const torch::Tensor& is_legal() const { return is_legal_; }

  /// The network with the smallest factor of every block, of which the others are parts.
  const Derived& widest() const { return widest_; }

  /// The widest network's tensors with the columns scaled by `shares` (blocks, candidates), whose
  /// rows sum to 1.
  Weights weights(const Weights& widest, const torch::Tensor& shares) const;

 private:
  struct Scaled {
    std::string name;
    int64_t begin = 0;  // of its columns among those of all
    int64_t columns = 0;
  };

  torch::Tensor is_legal_;
  Derived widest_;
  std::vector<Scaled> scaled_;
  torch::Tensor places_;  // of every column: the last candidate that has it, in a flat matrix
};

/// The same network by definition, where norms stand before the branches: every candidate of every
/// block is computed, and their outputs are summed. `large` are the large network's tensors. Slow;
/// to compare with.
///
/// images (B, C, H, W) -> logits (B, classes)
torch::Tensor explicit_mixture(const Space& space, const Weights& large,
                               const torch::Tensor& images, const torch::Tensor& shares,
                               const nn::Context& context = {});

/// -log(-log u) of numbers between 0 and 1: Gumbel(0, 1).
torch::Tensor gumbel(const torch::Tensor& uniform);

/// softmax((logits + noise) / tau) over the candidates of each block; 0 where `is_legal` is false.
torch::Tensor softened(const torch::Tensor& logits, const torch::Tensor& noise,
                       const torch::Tensor& tau, const torch::Tensor& is_legal);

}  // namespace adjoin::search
