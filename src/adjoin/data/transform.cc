#include "adjoin/data/transform.h"

#include <fmt/format.h>

#include <cmath>

#include "adjoin/core/error.h"

namespace adjoin::data {
namespace {

/// The image with its shorter side `side` long, the other in proportion, rounded down.
Image with_short_side(const Image& image, int64_t side, Interpolation interpolation) {
  const auto in_proportion = [&](int64_t length) {
    return std::max(side, side * length / std::min(image.width, image.height));
  };
  return resize(image, in_proportion(image.width), in_proportion(image.height), interpolation);
}

/// Where a crop of `size` begins in `length`: the middle, halves to the even side as in Python.
int64_t middle(int64_t length, int64_t size) {
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(length - size) / 2));
}

/// The square of `size` whose upper left corner is (left, top).
Image cut(const Image& image, int64_t left, int64_t top, int64_t size) {
  Image result{size, size, image.channels, {}};
  result.pixels.reserve(static_cast<size_t>(size * size * image.channels));
  for (int64_t y = top; y < top + size; ++y) {
    const auto row = image.pixels.begin() + (y * image.width + left) * image.channels;
    result.pixels.insert(result.pixels.end(), row, row + size * image.channels);
  }
  return result;
}

torch::Tensor per_channel(const std::vector<double>& values) {
  return torch::tensor(values, torch::kFloat32).view({-1, 1, 1});
}

}  // namespace

Image decoded(const Stored& stored, const std::string& origin, int64_t channels) {
  if (const auto* image = std::get_if<Image>(&stored)) {
    return with_channels(*image, origin, channels);
  }
  return decode_image(std::get<io::FileBytes>(stored).bytes, origin, channels);
}

Image eval_image(const Image& image, const Preprocessing& preprocessing, int64_t img_size,
                 std::string_view origin) {
  constexpr int64_t kMostTimes = 32;
  const auto [shorter, longer] = std::minmax(image.width, image.height);
  if (longer > kMostTimes * shorter) {
    throw Error(ErrorKind::kData,
                fmt::format("{}: {} x {} pixels are too long and thin: the longer "
                            "side may be {} times the shorter",
                            origin, image.width, image.height, kMostTimes));
  }
  const auto side =
      static_cast<int64_t>(std::floor(static_cast<double>(img_size) / preprocessing.crop_pct));
  const Image scaled = with_short_side(image, side, preprocessing.interpolation);
  if (scaled.width == img_size && scaled.height == img_size) return scaled;
  return cut(scaled, middle(scaled.width, img_size), middle(scaled.height, img_size), img_size);
}

torch::Tensor eval_input(const Image& image, const Preprocessing& preprocessing, int64_t img_size,
                         std::string_view origin) {
  const Image cropped = eval_image(image, preprocessing, img_size, origin);
  const auto pixels = torch::tensor(at::ArrayRef<uint8_t>(cropped.pixels), torch::kUInt8)
                          .view({cropped.height, cropped.width, cropped.channels});
  const auto values = pixels.permute({2, 0, 1}).to(torch::kFloat32).div(255);  // (C, H, W)
  return ((values - per_channel(preprocessing.mean)) / per_channel(preprocessing.std)).contiguous();
}

}  // namespace adjoin::data
