#pragma once

// Golden files: what the authors' own code computes on weights and images that are functions of
// names and indices alone. `verify` runs our forward pass on the same and says how far off it is,
// on any device and in any number format.

#include <string>
#include <vector>

#include "adjoin/core/json.h"
#include "adjoin/spec/tensors.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::models {

/// Value i of the tensor called `name`: uniform in [-1, 1), from splitmix64(fnv1a(name) + i).
///
/// float64, on the CPU
torch::Tensor golden_uniform(const std::string& name, at::IntArrayRef shape);

/// The weights of a golden file, float64, under our names (they are filled under the official
/// ones).
Weights golden_weights(const ModelSpec& spec);

/// The network a golden file was made with, from its "config". Error(kData) when it is not one.
ModelSpec golden_spec(const Json& golden);

/// How one recorded value compares.
struct GoldenRow {
  std::string name;  ///< "logits", "blocks.3", "norm"
  double error;  ///< largest absolute difference of the logits; for stages also relative: norms are
                 ///< large
};

struct GoldenReport {
  ModelSpec spec;
  std::string part;             ///< which part of it a compressed golden is of: "kept alpha 3"
  std::vector<GoldenRow> rows;  ///< logits first
  bool are_counts_equal;        ///< parameters and MACs by kind, exactly

  double logits_error() const { return rows.front().error; }
  double stage_error() const;
};

/// Runs the network of a golden file. `dtype` bfloat16 is autocast over float32 weights.
GoldenReport verify(const Json& golden, torch::Device device, torch::ScalarType dtype);

}  // namespace adjoin::models
