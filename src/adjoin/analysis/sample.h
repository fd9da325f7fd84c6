#pragma once

// The images a network is looked at with.

#include <string>
#include <vector>

#include "adjoin/data/dataset.h"
#include "adjoin/io/model_file.h"
#include "adjoin/tensor/torch.h"

namespace adjoin::analysis {

/// Images (B, C, H, W) with labels (B); undefined labels: no gradients and no accuracy.
struct Sample {
  torch::Tensor images;
  torch::Tensor labels;
  std::vector<std::string> unreadable = {};  ///< images that were left out
};

/// So many images of a split, evenly over its classes and always the same, as a network wants them.
/// Error(kData) when there are too few, none can be read, or the classes are not the network's.
Sample fixed_sample(const data::Split& split, const io::ModelHeader& header, int64_t images,
                    torch::Device device);

/// The first `most` images of a .safetensors with `input` (B, C, H, W), and `labels` (B) where it
/// has them.
Sample stored_sample(const std::string& path, const io::ModelHeader& header, int64_t most,
                     torch::Device device);

}  // namespace adjoin::analysis
