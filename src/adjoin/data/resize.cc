// Convolution with a filter as wide as the reduction, columns first, then rows, in integers of 22
// fractional bits with 8 bits between the two passes: PIL's resize, whose exact numbers the
// published accuracies were measured with.

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "adjoin/core/error.h"
#include "adjoin/core/table.h"
#include "adjoin/data/codec.h"
#include "adjoin/data/image.h"
#include "adjoin/data/resize_kernels.h"

namespace adjoin::data {
namespace {

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
  taps.stride = (static_cast<int64_t>(std::ceil(radius)) * 2 + 4) / 4 * 4;
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
  split_weights(taps);
  return taps;
}

ResizeKernels best_kernels() { return avx2_kernels().value_or(portable_kernels()); }

size_t row_bytes(const Image& image) { return static_cast<size_t>(image.width * image.channels); }

/// The part of an image that is resized.
struct Source {
  Source(const Image& image, const Box& box)
      : width(box.width),
        height(box.height),
        channels(image.channels),
        stride(row_bytes(image)),
        first(image.pixels.data() + static_cast<size_t>(box.top) * stride +
              static_cast<size_t>(box.left * channels)),
        end(image.pixels.data() + image.pixels.size()) {}

  const uint8_t* row(int64_t y) const { return first + static_cast<size_t>(y) * stride; }

  int64_t width;
  int64_t height;
  int64_t channels;
  size_t stride;
  const uint8_t* first;
  const uint8_t* end;  ///< of the image
};

/// First pass: the rows of the source at another width.
class RowResizer {
 public:
  RowResizer(const Source& source, int64_t width, Interpolation interpolation)
      : source_(source),
        taps_(make_taps(source.width, width, interpolation)),
        bytes_(static_cast<size_t>(source.width * source.channels)) {}

  /// Row y and, where there is one, the row after it.
  void make(int64_t y, uint8_t* out, uint8_t* next_out) {
    const bool has_next = y + 1 < source_.height;
    if (source_.channels == 1) {
      convolve_grey(source_.row(y), taps_, out);
      if (has_next) convolve_grey(source_.row(y + 1), taps_, next_out);
      return;
    }
    const uint8_t* row = readable(y, copies_[0]);
    if (has_next) {
      kernels_.convolve_rgb({row, readable(y + 1, copies_[1])}, taps_, {out, next_out});
    } else {
      kernels_.convolve_rgb({row, row}, taps_, {out, out});
    }
  }

 private:
  /// The row, or a copy of it if the image ends too close behind.
  const uint8_t* readable(int64_t y, std::vector<uint8_t>& copy) const {
    const uint8_t* row = source_.row(y);
    if (static_cast<size_t>(source_.end - row) >= bytes_ + kRowSlack) return row;
    copy.resize(bytes_ + kRowSlack);
    std::copy_n(row, bytes_, copy.data());
    return copy.data();
  }

  const Source& source_;
  ResizeKernels kernels_ = best_kernels();
  Taps taps_;
  size_t bytes_;  ///< of a row of the source
  std::array<std::vector<uint8_t>, 2> copies_;
};

/// The rows of the first pass, made when they are asked for and kept for as long as the windows of
/// the second, which only move down, can reach them.
class ResizedRows {
 public:
  ResizedRows(const Source& source, int64_t width, int64_t kept, Interpolation interpolation)
      : source_(source), kept_(kept + 1) {  // one is made ahead
    if (width == source.width) return;
    if (width * kept > kMaxImagePixels) {
      throw Error(ErrorKind::kConfig, "resize: a row of " + with_commas(width) +
                                          " pixels made of " + with_commas(kept) +
                                          " rows takes too much memory; resize in two steps");
    }
    resizer_.emplace(source, width, interpolation);
    bytes_ = static_cast<size_t>(width * source.channels);
    ring_.resize(bytes_ * static_cast<size_t>(kept_));
  }

  /// Rows are asked for in order, going back less than `kept`.
  const uint8_t* at(int64_t y) {
    if (!resizer_) return source_.row(y);
    for (; made_ <= y; made_ += 2) resizer_->make(made_, slot(made_), slot(made_ + 1));
    return slot(y);
  }

 private:
  uint8_t* slot(int64_t y) { return ring_.data() + static_cast<size_t>(y % kept_) * bytes_; }

  const Source& source_;
  int64_t kept_;
  std::optional<RowResizer> resizer_;
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
  return resize(image, {0, 0, image.width, image.height}, width, height, interpolation);
}

Image resize(const Image& image, const Box& box, int64_t width, int64_t height,
             Interpolation interpolation) {
  check_sizes(image, width, height);
  check_box("resize", box, image.width, image.height);
  const Source source(image, box);
  Image result{width, height, image.channels, {}};
  const size_t bytes = row_bytes(result);
  result.pixels.resize(bytes * static_cast<size_t>(height));
  const auto out = [&](int64_t y) { return result.pixels.data() + static_cast<size_t>(y) * bytes; };
  if (height == source.height) {
    RowResizer resizer(source, width, interpolation);
    for (int64_t y = 0; y < height; y += 2)
      resizer.make(y, out(y), out(std::min(y + 1, height - 1)));
    return result;
  }
  const Taps taps = make_taps(source.height, height, interpolation);
  ResizedRows rows(source, width, std::min(taps.stride, source.height), interpolation);
  const ResizeKernels kernels = best_kernels();
  std::vector<const uint8_t*> window_rows;
  for (int64_t y = 0; y < height; ++y) {
    const Window window = taps.windows[static_cast<size_t>(y)];
    window_rows.clear();
    for (int64_t t = 0; t < window.count; ++t) window_rows.push_back(rows.at(window.first + t));
    kernels.blend(window_rows, taps, y, {out(y), bytes});
  }
  return result;
}

}  // namespace adjoin::data
