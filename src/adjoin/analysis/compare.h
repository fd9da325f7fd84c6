#pragma once

// Two networks on the same images: how far apart the clouds of their tokens are, and what they say.

#include "adjoin/analysis/inspect.h"

namespace adjoin::analysis {

struct CompareOptions {
  int64_t images = 2;  ///< whose clouds are moved onto each other; exact, so it takes time
};

struct CloudDistance {
  std::string first;
  std::string second;
  double token_emd = 0;           ///< mean way of a token, Euclidean
  double token_emd_relative = 0;  ///< as a share of the mean length of the first one's tokens
};

struct Comparison {
  /// Blocks of the same origin, other layers of the same name; of the same tokens and width.
  std::vector<CloudDistance> layers;
  std::optional<double> class_emd;  ///< between mean class probabilities; see class_distances()
  double total_variation = 0;  ///< half the sum of differences of probabilities, mean of images
  double kl = 0;               ///< of the second from the first, mean of images
  double agreement = 0;        ///< percent of images with the same answer
  std::vector<std::string> notes;
};

/// Error(kConfig) when the networks tell different numbers of classes apart.
Comparison compare(const Inspection& first, const Inspection& second,
                   const torch::Tensor& class_distances, const CompareOptions& options);

/// How far apart two classes are to a network: the distance of their rows of the head's weights,
/// the largest being 1. Where all rows are alike, 1 between any two.
///
/// (classes, classes), float64
torch::Tensor class_distances(const Network& network);

Json to_json(const Comparison& comparison);

}  // namespace adjoin::analysis
