#pragma once

// A network seen layer by layer with a batch of images: how much of the tokens' variety is left,
// what attention looks at, how large activations and gradients are, how much of each block its
// first heads and hidden units already do.
//
//   Inspection seen = inspect({spec, weights}, {images, labels}, {});
//   to_json(seen);  // "layers" of `adjoin inspect --json`

#include <optional>
#include <string>
#include <vector>

#include "adjoin/analysis/sample.h"
#include "adjoin/core/json.h"
#include "adjoin/spec/model_spec.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::analysis {

struct Network {
  const ModelSpec& spec;
  const Weights& weights;
};

struct InspectOptions {
  int64_t alpha = 0;      ///< of the first part of a block; 0: the least a block allows
  bool is_brief = false;  ///< neither attention matrices nor first parts, no layers of one token
  int64_t images = 2;     ///< whose tokens and attention matrices are decomposed; it takes time
};

/// How much of what a block changes its first heads and hidden units change alone.
struct FirstPart {
  int64_t alpha = 1;
  double explained = 0;  ///< 1 - |y - y'|^2 / |y - x|^2, x going in, y and y' coming out
  double cosine = 0;     ///< of y - x and y' - x
};

struct BlockReport {
  std::vector<double> attention_entropy;                ///< per head, nats
  std::vector<double> attention_rank;                   ///< per head, effective rank
  std::vector<std::vector<double>> attention_spectrum;  ///< per head, largest first
  std::optional<double> weight_gradient_norm;
  std::optional<FirstPart> first_part;  ///< none where a block cannot be divided so
};

/// Means over the images; of ranks and spectra over the first ones. Norms are relative to the
/// tokens themselves, and to the residual of what entered the first block (`.._of_input`).
struct LayerReport {
  std::string name;  ///< "tokens" enter the first block; then blocks, merges and the last norm
  std::optional<int64_t> origin;  ///< of a block: the large network's that it came from
  int64_t tokens = 0;
  int64_t width = 0;
  double residual_frobenius = 0;
  double residual_composite = 0;
  double residual_frobenius_of_input = 0;
  double residual_composite_of_input = 0;
  double token_cosine = 0;
  double effective_rank = 0;
  double activation_norm = 0;           ///< mean length of a token
  std::optional<double> gradient_norm;  ///< of the mean loss by this layer's output, all of it
  std::optional<BlockReport> block;
};

struct Inspection {
  std::string model;
  std::vector<LayerReport> layers;
  std::vector<torch::Tensor> outputs;  ///< (B, N, C) of each layer
  torch::Tensor logits;                ///< (B, classes)
  std::optional<double> loss;          ///< mean cross entropy
  std::optional<double> top1;          ///< percent
};

/// Error(kNumeric), naming the layer, when an activation is not finite; Error(kConfig) when a layer
/// has one token, unless it is to be brief.
Inspection inspect(const Network& network, const Sample& sample, const InspectOptions& options);

Json to_json(const Inspection& inspection);

/// The first part of a layer's JSON: what costs little, for every few epochs of a training.
Json brief_json(const Inspection& inspection);

}  // namespace adjoin::analysis
