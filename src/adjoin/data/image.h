#pragma once

// Images as 8-bit pixels: decoding JPEG and PNG, resizing as PIL does it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "adjoin/spec/preprocessing.h"

namespace adjoin::data {

/// Rows of pixels of interleaved channels: (height, width, channels).
struct Image {
  int64_t width = 0;
  int64_t height = 0;
  int64_t channels = 0;
  std::vector<uint8_t> pixels;
};

/// Whether the bytes open like a JPEG or a PNG.
bool looks_like_image(std::span<const std::byte> bytes);

/// A JPEG or PNG as grey (channels 1) or RGB (3), the pixels PIL's convert("L") or convert("RGB")
/// gives (of 16-bit PNGs the high byte); orientation tags are ignored, as in torchvision and timm.
/// Error(kData) opening with `origin` when it is broken, truncated, or larger than 178 million
/// pixels.
Image decode_image(std::span<const std::byte> bytes, std::string_view origin, int64_t channels);

/// The image at another size with PIL's antialiasing filters, bit for bit as PIL computes it.
Image resize(const Image& image, int64_t width, int64_t height, Interpolation interpolation);

}  // namespace adjoin::data
