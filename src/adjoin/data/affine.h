#pragma once

// Moving the pixels of an image along straight lines, as PIL's Image.transform computes it. Of use
// inside data only.

#include <array>

#include "adjoin/data/image.h"

namespace adjoin::data {

/// Where a pixel of the result is taken from: (a x + b y + c, d x + e y + f).
struct Affine {
  double a = 1, b = 0, c = 0;
  double d = 0, e = 1, f = 0;
};

/// Turned about the middle, counterclockwise.
Affine rotation(const Image& image, double degrees);

using Color = std::array<uint8_t, 3>;  ///< the first is that of a grey image

/// An image of the same size; what comes from outside has the color `fill`. Bicubic is the sharper
/// kernel PIL has here, with a = -1, and nothing is averaged where the image shrinks.
Image transform(const Image& image, const Affine& from, Interpolation interpolation,
                const Color& fill);

}  // namespace adjoin::data
