#include "adjoin/data/image.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "adjoin/core/error.h"
#include "adjoin/core/table.h"
#include "adjoin/data/codec.h"

namespace adjoin::data {
namespace {

Image blank(const Image& like, int64_t channels) {
  Image image{like.width, like.height, channels, {}};
  image.pixels.resize(static_cast<size_t>(like.width * like.height * channels));
  return image;
}

/// Ink dims what the other inks left: the product of the two, rounded.
Image cmyk_to_rgb(const Image& cmyk) {
  Image rgb = blank(cmyk, 3);
  const size_t count = cmyk.pixels.size() / 4;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* from = cmyk.pixels.data() + i * 4;
    uint8_t* to = rgb.pixels.data() + i * 3;
    for (int c = 0; c < 3; ++c) to[c] = static_cast<uint8_t>((from[c] * from[3] + 127) / 255);
  }
  return rgb;
}

/// Luma of ITU-R 601 with weights that sum to 2^16.
Image rgb_to_grey(const Image& rgb) {
  Image grey = blank(rgb, 1);
  for (size_t i = 0; i < grey.pixels.size(); ++i) {
    const uint8_t* from = rgb.pixels.data() + i * 3;
    const uint32_t sum = from[0] * 19595U + from[1] * 38470U + from[2] * 7471U + 0x8000U;
    grey.pixels[i] = static_cast<uint8_t>(sum >> 16);
  }
  return grey;
}

Image grey_to_rgb(const Image& grey) {
  Image rgb = blank(grey, 3);
  for (size_t i = 0; i < grey.pixels.size(); ++i) {
    for (size_t c = 0; c < 3; ++c) rgb.pixels[i * 3 + c] = grey.pixels[i];
  }
  return rgb;
}

}  // namespace

void check_image_size(std::string_view origin, int64_t width, int64_t height) {
  const auto fits = [](int64_t side) { return side >= 1 && side <= kMaxImageSide; };
  if (fits(width) && fits(height) && width * height <= kMaxImagePixels) return;
  throw Error(ErrorKind::kData, std::string(origin) + ": the image claims " + with_commas(width) +
                                    " x " + with_commas(height) + " pixels; sides from 1 to " +
                                    with_commas(kMaxImageSide) + " and at most " +
                                    with_commas(kMaxImagePixels) + " pixels are read");
}

void check_box(std::string_view what, const Box& box, int64_t width, int64_t height) {
  const auto fits = [](int64_t first, int64_t length, int64_t limit) {
    return first >= 0 && length >= 1 && length <= limit && first <= limit - length;
  };
  if (fits(box.left, box.width, width) && fits(box.top, box.height, height)) return;
  throw Error(ErrorKind::kInternal,
              fmt::format("{}: a box of {} x {} pixels at {}, {} is not inside {} x {} pixels",
                          what, box.width, box.height, box.left, box.top, width, height));
}

Image with_channels(Image image, std::string_view origin, int64_t channels) {
  if (image.channels == 4) image = cmyk_to_rgb(image);
  if (image.channels == channels) return image;
  if (image.channels == 3 && channels == 1) return rgb_to_grey(image);
  if (image.channels == 1 && channels == 3) return grey_to_rgb(image);
  throw Error(ErrorKind::kData, fmt::format("{}: has {} channels where {} are wanted", origin,
                                            image.channels, channels));
}

bool looks_like_image(std::span<const std::byte> bytes) {
  return looks_like_jpeg(bytes) || looks_like_png(bytes);
}

Image decode_image(std::span<const std::byte> bytes, std::string_view origin, int64_t channels) {
  if (channels != 1 && channels != 3) {
    throw Error(ErrorKind::kConfig, std::string(origin) +
                                        ": an image decodes to 1 or 3 channels, not to " +
                                        std::to_string(channels));
  }
  if (bytes.empty()) {
    throw Error(ErrorKind::kData, std::string(origin) + ": the file is empty, not a JPEG or PNG");
  }
  if (!looks_like_image(bytes)) {
    throw Error(ErrorKind::kData,
                std::string(origin) + ": not a JPEG or PNG, the two formats that are read");
  }
  Image image = looks_like_jpeg(bytes) ? decode_jpeg(bytes, origin) : decode_png(bytes, origin);
  return with_channels(std::move(image), origin, channels);
}

}  // namespace adjoin::data
