#pragma once

// From an image to the input of a network, as timm and torchvision evaluate: the shorter side
// resized to img_size / crop_pct, the middle cut out, values normalised.

#include <string_view>

#include "adjoin/data/image.h"
#include "adjoin/tensor/torch.h"

namespace adjoin::data {

/// Resized and cut to img_size x img_size; still 8 bits. Needs no LibTorch, so any thread may call
/// it. Error(kData) opening with `origin` when the image is too long and thin to be resized.
Image eval_image(const Image& image, const Preprocessing& preprocessing, int64_t img_size,
                 std::string_view origin);

/// The same, normalised. Error(kData) opening with `origin` when the image is too long and thin to
/// be resized.
///
/// (channels, img_size, img_size), float32
torch::Tensor eval_input(const Image& image, const Preprocessing& preprocessing, int64_t img_size,
                         std::string_view origin);

/// Values from 0 to 1 as networks take them, and back: (.., C, H, W), float32.
torch::Tensor normalised(const torch::Tensor& values, const Preprocessing& preprocessing);
torch::Tensor denormalised(const torch::Tensor& values, const Preprocessing& preprocessing);

}  // namespace adjoin::data
