// Convolution with a filter as wide as the reduction, columns first, then rows, in integers of 22
// fractional bits with 8 bits between the two passes: PIL's resize, whose exact numbers the
// published accuracies were measured with.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "adjoin/core/error.h"
#include "adjoin/core/table.h"
#include "adjoin/data/codec.h"
#include "adjoin/data/image.h"

namespace adjoin::data {
namespace {

/// 32 bits hold 8 of a pixel, these, and 2 for sums beyond 255 and for the sign.
constexpr int kFractionBits = 22;
constexpr int32_t kHalf = 1 << (kFractionBits - 1);

struct Filter {
  double radius;  ///< zero from here on
  double (*value)(double distance);
};

double triangle(double distance) { return distance < 1 ? 1 - distance : 0; }

/// Keys' cubic convolution with a = -1/2.
double cubic(double distance) {
  constexpr double kA = -0.5;
  const double d = distance;
  if (d < 1) return ((kA + 2) * d - (kA + 3)) * d * d + 1;
  return d < 2 ? (((d - 5) * d + 8) * d - 4) * kA : 0;
}

Filter filter_of(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::kBilinear: return {1, triangle};
    case Interpolation::kBicubic: return {2, cubic};
  }
  throw Error(ErrorKind::kInternal, "resize: unknown interpolation");
}

/// The inputs first .. first + count - 1 make one output.
struct Window {
  int64_t first;
  int64_t count;
};

/// For each output along one side, its inputs and their weights.
struct Taps {
  std::vector<Window> windows;
  std::vector<int32_t> weights;
  int64_t stride = 0;  ///< from the weights of one output to those of the next

  const int32_t* weights_of(int64_t output) const { return weights.data() + output * stride; }
};

int32_t to_fixed(double weight) {
  const double scaled = weight * (1 << kFractionBits);
  return static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

Taps make_taps(int64_t from, int64_t to, Interpolation interpolation) {
  const Filter filter = filter_of(interpolation);
  const double step = static_cast<double>(from) / static_cast<double>(to);
  const double stretch = std::max(step, 1.0);  // enlarging does not narrow the filter
  const double radius = filter.radius * stretch;
  Taps taps;
  taps.stride = static_cast<int64_t>(std::ceil(radius)) * 2 + 1;
  taps.windows.resize(static_cast<size_t>(to));
  taps.weights.resize(static_cast<size_t>(to * taps.stride));
  std::vector<double> values(static_cast<size_t>(taps.stride));
  for (int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * step;
    const auto first =
        std::max<int64_t>(static_cast<int64_t>(std::floor(center - radius + 0.5)), 0);
    const auto end = std::min(static_cast<int64_t>(std::floor(center + radius + 0.5)), from);
    const auto count = static_cast<size_t>(end - first);
    taps.windows[static_cast<size_t>(i)] = {first, end - first};
    double sum = 0;
    for (size_t t = 0; t < count; ++t) {
      const double place = static_cast<double>(first + static_cast<int64_t>(t)) - center + 0.5;
      values[t] = filter.value(std::abs(place * (1 / stretch)));
      sum += values[t];
    }
    int32_t* weights = taps.weights.data() + i * taps.stride;
    for (size_t t = 0; t < count; ++t) weights[t] = to_fixed(values[t] / sum);
  }
  return taps;
}

uint8_t to_pixel(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kFractionBits, 0, 255));
}

template <int kChannels>
void convolve_row(const uint8_t* row, const Taps& taps, uint8_t* out) {
  for (size_t x = 0; x < taps.windows.size(); ++x) {
    const Window window = taps.windows[x];
    const int32_t* weights = taps.weights_of(static_cast<int64_t>(x));
    const uint8_t* in = row + window.first * kChannels;
    std::array<int32_t, kChannels> sums;
    sums.fill(kHalf);
    for (int64_t t = 0; t < window.count; ++t) {
      for (int c = 0; c < kChannels; ++c) sums[c] += in[t * kChannels + c] * weights[t];
    }
    for (int c = 0; c < kChannels; ++c) *out++ = to_pixel(sums[c]);
  }
}

size_t row_bytes(const Image& image) { return static_cast<size_t>(image.width * image.channels); }

const uint8_t* row_of(const Image& image, int64_t y) {
  return image.pixels.data() + static_cast<size_t>(y) * row_bytes(image);
}

/// First pass: row y of the image at another width.
void resize_row(const Image& image, int64_t y, const Taps& taps, uint8_t* out) {
  if (image.channels == 1) {
    convolve_row<1>(row_of(image, y), taps, out);
  } else {
    convolve_row<3>(row_of(image, y), taps, out);
  }
}

/// Second pass: one output row from the weighted rows of its window. A block of sums at a time, so
/// that they stay in the nearest cache however many rows there are.
void blend_rows(std::span<const uint8_t* const> rows, const int32_t* weights,
                std::span<uint8_t> out) {
  constexpr size_t kBlock = 256;
  std::array<int32_t, kBlock> sums;
  for (size_t begin = 0; begin < out.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, out.size() - begin);
    sums.fill(kHalf);
    for (size_t t = 0; t < rows.size(); ++t) {
      const uint8_t* in = rows[t] + begin;
      const int32_t weight = weights[t];
      for (size_t i = 0; i < count; ++i) sums[i] += in[i] * weight;
    }
    for (size_t i = 0; i < count; ++i) out[begin + i] = to_pixel(sums[i]);
  }
}

/// The rows of the first pass, made when they are asked for and kept for as long as the windows of
/// the second, which only move down, can reach them.
class ResizedRows {
 public:
  ResizedRows(const Image& image, int64_t width, int64_t kept, Interpolation interpolation)
      : image_(image), kept_(kept), is_same_width_(width == image.width) {
    if (is_same_width_) return;
    if (width * kept > kMaxImagePixels) {
      throw Error(ErrorKind::kConfig, "resize: a row of " + with_commas(width) +
                                          " pixels made of " + with_commas(kept) +
                                          " rows takes too much memory; resize in two steps");
    }
    taps_ = make_taps(image.width, width, interpolation);
    bytes_ = static_cast<size_t>(width * image.channels);
    ring_.resize(bytes_ * static_cast<size_t>(kept));
  }

  /// Rows are asked for in order, going back less than `kept`.
  const uint8_t* at(int64_t y) {
    if (is_same_width_) return row_of(image_, y);
    for (; made_ <= y; ++made_) resize_row(image_, made_, taps_, slot(made_));
    return slot(y);
  }

 private:
  uint8_t* slot(int64_t y) { return ring_.data() + static_cast<size_t>(y % kept_) * bytes_; }

  const Image& image_;
  int64_t kept_;
  bool is_same_width_;
  Taps taps_;
  size_t bytes_ = 0;
  std::vector<uint8_t> ring_;
  int64_t made_ = 0;
};

void check_sizes(const Image& image, int64_t width, int64_t height) {
  check_image_size("resize", image.width, image.height);
  if (image.channels != 1 && image.channels != 3) {
    throw Error(ErrorKind::kData, "resize: the image has " + std::to_string(image.channels) +
                                      " channels, must be 1 or 3");
  }
  if (image.pixels.size() != row_bytes(image) * static_cast<size_t>(image.height)) {
    throw Error(ErrorKind::kData, "resize: the image has " + std::to_string(image.pixels.size()) +
                                      " bytes, not height x width x channels");
  }
  const auto fits = [](int64_t side) { return side >= 1 && side <= kMaxImageSide; };
  if (!fits(width) || !fits(height) || width * height > kMaxImagePixels) {
    throw Error(ErrorKind::kConfig, "resize: cannot make " + with_commas(width) + " x " +
                                        with_commas(height) + " pixels; sides go from 1 to " +
                                        with_commas(kMaxImageSide) + ", the product to " +
                                        with_commas(kMaxImagePixels));
  }
}

}  // namespace

Image resize(const Image& image, int64_t width, int64_t height, Interpolation interpolation) {
  check_sizes(image, width, height);
  if (width == image.width && height == image.height) return image;
  Image result{width, height, image.channels, {}};
  const size_t bytes = row_bytes(result);
  result.pixels.resize(bytes * static_cast<size_t>(height));
  const auto out = [&](int64_t y) { return result.pixels.data() + static_cast<size_t>(y) * bytes; };
  if (height == image.height) {
    const Taps taps = make_taps(image.width, width, interpolation);
    for (int64_t y = 0; y < height; ++y) resize_row(image, y, taps, out(y));
    return result;
  }
  const Taps taps = make_taps(image.height, height, interpolation);
  ResizedRows rows(image, width, std::min(taps.stride, image.height), interpolation);
  std::vector<const uint8_t*> window_rows;
  for (int64_t y = 0; y < height; ++y) {
    const Window window = taps.windows[static_cast<size_t>(y)];
    window_rows.clear();
    for (int64_t t = 0; t < window.count; ++t) window_rows.push_back(rows.at(window.first + t));
    blend_rows(window_rows, taps.weights_of(y), {out(y), bytes});
  }
  return result;
}

}  // namespace adjoin::data
