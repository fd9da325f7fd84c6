#pragma once

// Cutting images to a size, at random as in torchvision's RandomResizedCrop and RandomCrop, or out
// of the middle. Of use inside data only.

#include <string_view>
#include <vector>

#include "adjoin/core/rng.h"
#include "adjoin/data/image.h"

namespace adjoin::data {

/// A box of an image, its area between scale[0] and scale[1] of the whole, uniformly, and its
/// width / height between ratio[0] and ratio[1], uniformly in the logarithm. After ten draws that
/// do not fit, the largest box in the middle with a ratio that is allowed.
Box random_resized_box(int64_t width, int64_t height, const std::vector<double>& scale,
                       const std::vector<double>& ratio, Rng& rng);

/// Error(kInternal) when the box is not inside the image.
Image crop(const Image& image, const Box& box);

/// A square out of the image with `padding` black pixels around it, anywhere.
Image random_padded_crop(const Image& image, int64_t side, int64_t padding, Rng& rng);

/// The shorter side resized to `short_side`, the other in proportion, rounded down; then a square
/// of `side` out of the middle. Error(kData) opening with `origin` when the image is too long and
/// thin to be resized.
Image middle_square(const Image& image, int64_t short_side, int64_t side,
                    Interpolation interpolation, std::string_view origin);

/// The image mirrored left to right.
void flip(Image& image);

}  // namespace adjoin::data
