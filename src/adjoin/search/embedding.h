#pragma once

// Networks as points: what a Gaussian process measures distances between.

#include <functional>
#include <vector>

#include "adjoin/search/exploration.h"
#include "adjoin/search/gaussian_process.h"
#include "adjoin/search/lstm.h"

namespace adjoin::search {

/// A network block by block: whether it is there, its shares of heads and hidden units, where it
/// and its norms stand, and the skips that come in and go out.
///
/// (blocks, 5 + 2 blocks), float64
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
/// the others. Several at once, each from a seed and a part of what is known of its own.
class LearnedEmbeddings {
 public:
  LearnedEmbeddings(int64_t features, const EmbeddingOptions& options,
                    const std::vector<uint64_t>& seeds);

  /// Until the likelihood no longer moves: that of all before every step. `parts`: for each
  /// embedding the rows of `sequences` and `values` that it learns from, one at least. `between`
  /// is called before every step, and may throw.
  std::vector<double> train(
      const torch::Tensor& sequences, const torch::Tensor& values,
      const std::vector<std::vector<int64_t>>& parts, const std::function<void()>& between = [] {});

  /// By one of them: (networks, blocks, features) -> (networks, 2 hidden), float64
  torch::Tensor points(size_t which, const torch::Tensor& sequences) const;

 private:
  EmbeddingOptions options_;
  std::vector<LstmLayer> layers_;
};

}  // namespace adjoin::search
