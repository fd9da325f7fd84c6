#include "adjoin/nn/patch_embed.h"

namespace adjoin::nn {

torch::Tensor patch_embed(const Weights& weights, const std::string& prefix,
                          const torch::Tensor& image) {
  const torch::Tensor& weight = weights.at(prefix + "weight");
  const int64_t patch = weight.size(3);
  const int64_t batch = image.size(0);
  const int64_t chans = image.size(1);
  const int64_t rows = image.size(2) / patch;
  const int64_t cols = image.size(3) / patch;
  const auto patches = image.reshape({batch, chans, rows, patch, cols, patch})
                           .permute({0, 2, 4, 1, 3, 5})  // (B, r, c, C, P, P)
                           .reshape({batch, rows * cols, chans * patch * patch});  // (B, N, C P P)
  return torch::linear(patches, weight.flatten(1), weights.at(prefix + "bias"));
}

}  // namespace adjoin::nn
