#include "adjoin/data/crop.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "adjoin/core/error.h"
#include "adjoin/data/codec.h"

namespace adjoin::data {
namespace {

/// Nearest, halves to the even side as in Python.
int64_t rounded(double value) { return static_cast<int64_t>(std::nearbyint(value)); }

/// The largest box in the middle whose ratio is allowed, at least a pixel wide and high.
Box central_box(int64_t width, int64_t height, double least_ratio, double most_ratio) {
  const double own_ratio = static_cast<double>(width) / static_cast<double>(height);
  Box box{0, 0, width, height};
  if (own_ratio < least_ratio) {
    box.height = std::max<int64_t>(rounded(static_cast<double>(width) / least_ratio), 1);
  } else if (own_ratio > most_ratio) {
    box.width = std::max<int64_t>(rounded(static_cast<double>(height) * most_ratio), 1);
  }
  box.left = (width - box.width) / 2;
  box.top = (height - box.height) / 2;
  return box;
}

/// Copies the pixels of `box` to where they stand, (left, top) being their place in `to`.
void paste(const Image& from, const Box& box, int64_t left, int64_t top, Image& to) {
  const int64_t pixel = from.channels;
  for (int64_t y = 0; y < box.height; ++y) {
    const uint8_t* row = from.pixels.data() + ((box.top + y) * from.width + box.left) * pixel;
    std::copy_n(row, box.width * pixel, to.pixels.data() + ((top + y) * to.width + left) * pixel);
  }
}

Image black(int64_t width, int64_t height, int64_t channels) {
  Image image{width, height, channels, {}};
  image.pixels.resize(static_cast<size_t>(width * height * channels));
  return image;
}

template <size_t kChannels>
void flip_rows(Image& image) {
  using Pixel = std::array<uint8_t, kChannels>;
  static_assert(sizeof(Pixel) == kChannels);
  for (int64_t y = 0; y < image.height; ++y) {
    uint8_t* left = image.pixels.data() + static_cast<size_t>(y * image.width) * kChannels;
    uint8_t* right = left + static_cast<size_t>(image.width - 1) * kChannels;
    for (; left < right; left += kChannels, right -= kChannels) {
      Pixel a, b;
      std::memcpy(&a, left, kChannels);
      std::memcpy(&b, right, kChannels);
      std::memcpy(left, &b, kChannels);
      std::memcpy(right, &a, kChannels);
    }
  }
}

}  // namespace

Box random_resized_box(int64_t width, int64_t height, const std::vector<double>& scale,
                       const std::vector<double>& ratio, Rng& rng) {
  constexpr int kTries = 10;
  const double area = static_cast<double>(width) * static_cast<double>(height);
  for (int i = 0; i < kTries; ++i) {
    const double wanted = area * rng.uniform(scale[0], scale[1]);
    const double shape = std::exp(rng.uniform(std::log(ratio[0]), std::log(ratio[1])));
    const int64_t w = rounded(std::sqrt(wanted * shape));
    const int64_t h = rounded(std::sqrt(wanted / shape));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const int64_t top = rng.below(height - h + 1);
    return {rng.below(width - w + 1), top, w, h};
  }
  return central_box(width, height, ratio[0], ratio[1]);
}

Image crop(const Image& image, const Box& box) {
  check_box("crop", box, image.width, image.height);
  Image result = black(box.width, box.height, image.channels);
  paste(image, box, 0, 0, result);
  return result;
}

Image random_padded_crop(const Image& image, int64_t side, int64_t padding, Rng& rng) {
  // Where the square begins, seen from the corner of the image: negative in the padding.
  const int64_t top = rng.below(image.height + 2 * padding - side + 1) - padding;
  const int64_t left = rng.below(image.width + 2 * padding - side + 1) - padding;
  const Box seen{std::max<int64_t>(left, 0), std::max<int64_t>(top, 0),
                 std::min(left + side, image.width) - std::max<int64_t>(left, 0),
                 std::min(top + side, image.height) - std::max<int64_t>(top, 0)};
  Image result = black(side, side, image.channels);
  if (seen.width > 0 && seen.height > 0)
    paste(image, seen, seen.left - left, seen.top - top, result);
  return result;
}

Image middle_square(const Image& image, int64_t short_side, int64_t side,
                    Interpolation interpolation, std::string_view origin) {
  constexpr int64_t kMostTimes = 32;
  const auto [shorter, longer] = std::minmax({image.width, image.height});
  if (longer > kMostTimes * shorter) {
    throw Error(ErrorKind::kData,
                fmt::format("{}: {} x {} pixels are too long and thin: the longer "
                            "side may be {} times the shorter",
                            origin, image.width, image.height, kMostTimes));
  }
  const auto in_proportion = [&, shortest = shorter](int64_t length) {
    return std::max(short_side, short_side * length / shortest);
  };
  const Image scaled =
      resize(image, in_proportion(image.width), in_proportion(image.height), interpolation);
  const auto middle = [&](int64_t length) {
    return rounded(static_cast<double>(length - side) / 2);
  };
  return crop(scaled, {middle(scaled.width), middle(scaled.height), side, side});
}

void flip(Image& image) {
  if (image.channels == 1) {
    flip_rows<1>(image);
  } else {
    flip_rows<3>(image);
  }
}

}  // namespace adjoin::data
