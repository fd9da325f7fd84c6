#pragma once

// Networks as points: what a Gaussian process measures distances between.

#include <memory>
#include <vector>

#include "adjoin/search/exploration.h"
#include "adjoin/search/gaussian_process.h"

namespace adjoin::search {

/// A network block by block: whether it is there, its shares of heads and hidden units, where it
/// stands, and the skips that come in and go out.
///
/// (blocks, 4 + 2 blocks), float64
torch::Tensor block_sequence(const Exploration& space, const Choice& choice);

/// (networks, blocks, features)
torch::Tensor block_sequences(const Exploration& space, const std::vector<Choice>& choices);

/// Points made by hand: all of the sequence in one row, scaled so that kernels of a length of about
/// 0.1 tell networks apart.
///
/// (networks, ..)
torch::Tensor plain_points(const torch::Tensor& sequences);

struct EmbeddingOptions {
  int64_t layers = 2;
  int64_t hidden = 32;
  int64_t most_steps = 100;
  double lr = 1e-3;
  double weight_decay = 5e-4;
  ProcessOptions process;
};

/// Points that are learned: a bidirectional LSTM over the blocks, its outputs averaged and brought
/// to length 1 (ESNAC), trained so that a Gaussian process on the points foretells every value from
/// the others.
class LearnedEmbedding {
 public:
  LearnedEmbedding(int64_t features, const EmbeddingOptions& options, uint64_t seed);
  ~LearnedEmbedding();

  /// Until the likelihood no longer moves; the likelihood before every step.
  std::vector<double> train(const torch::Tensor& sequences, const torch::Tensor& values);

  /// (networks, blocks, features) -> (networks, 2 hidden)
  torch::Tensor operator()(const torch::Tensor& sequences) const;

 private:
  struct Network;
  EmbeddingOptions options_;
  std::unique_ptr<Network> network_;
};

}  // namespace adjoin::search
