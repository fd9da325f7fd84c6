#pragma once

// What a user hands to a network: image files, or tensors in a safetensors file.

#include <optional>
#include <string>
#include <vector>

#include "adjoin/io/model_file.h"
#include "adjoin/tensor/torch.h"

namespace adjoin::data {

/// One image, ready for the network.
struct Input {
  std::string name;              ///< the path; "batch.safetensors[3]" for one of several
  torch::Tensor image;           ///< (C, H, W), float32 or float64
  std::optional<int64_t> label;  ///< where a tensor file has `labels` (B)
};

/// The images of a file: one of a JPEG or PNG, preprocessed as the model says; of a safetensors all
/// that `input` (B, C, H, W) holds, as they are. Error(kData) when the file is neither, or the
/// tensors do not fit the network.
std::vector<Input> read_inputs(const std::string& path, const io::ModelHeader& header);

}  // namespace adjoin::data
