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

/// A rectangle of pixels inside an image.
struct Box {
  int64_t left = 0;
  int64_t top = 0;
  int64_t width = 0;
  int64_t height = 0;

  bool operator==(const Box&) const = default;
};

/// Whether the bytes open like a JPEG or a PNG.
bool looks_like_image(std::span<const std::byte> bytes);

/// A JPEG or PNG as grey (channels 1) or RGB (3), the pixels PIL's convert("L") or convert("RGB")
/// gives (of 16-bit PNGs the high byte); orientation tags are ignored, as in torchvision and timm.
/// Error(kData) opening with `origin` when it is broken, truncated, or larger than 178 million
/// pixels.
Image decode_image(std::span<const std::byte> bytes, std::string_view origin, int64_t channels);

/// Grey as RGB or RGB as grey, as PIL converts them, and CMYK as either; the image itself where it
/// has the channels. Error(kData) opening with `origin` for other numbers of channels.
Image with_channels(Image image, std::string_view origin, int64_t channels);

/// The image at another size with PIL's antialiasing filters, bit for bit as PIL computes it.
Image resize(const Image& image, int64_t width, int64_t height, Interpolation interpolation);

/// The same of a part of the image, as if it had been cut out first: nothing outside the box shows
/// in the result. Error(kInternal) when the box is not inside the image.
Image resize(const Image& image, const Box& box, int64_t width, int64_t height,
             Interpolation interpolation);

}  // namespace adjoin::data
