#include "adjoin/data/affine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace adjoin::data {
namespace {

/// PIL keeps 15 digits, which makes right angles exact.
double fifteen_digits(double value) { return std::nearbyint(value * 1e15) / 1e15; }

/// PIL rounds down what it computes in double precision. In single precision a whole number can
/// come out a little low and must not fall to the next.
constexpr float kRoundingSlack = 1.0F / 1024;

struct Linear {
  static constexpr int kCount = 2;

  static std::array<float, 2> weights(float place) { return {1 - place, place}; }
};

/// Cubic convolution with a = -1.
struct Cubic {
  static constexpr int kCount = 4;

  static std::array<float, 4> weights(float d) {
    const float square = d * d;
    const float cube = square * d;
    return {2 * square - d - cube, 1 - 2 * square + cube, d + square - cube, cube - square};
  }
};

/// The pixels around a place, kCount x kCount of them; beyond the rim stand copies of it.
template <int kCount, int kChannels>
class Patch {
 public:
  Patch(const Image& image, int64_t left, int64_t top) {
    const int64_t stride = image.width * kChannels;
    if (left >= 0 && top >= 0 && left + kCount <= image.width && top + kCount <= image.height) {
      const uint8_t* first = image.pixels.data() + top * stride + left * kChannels;
      for (int i = 0; i < kCount; ++i) rows[i] = first + i * stride;
      return;
    }
    for (int i = 0; i < kCount; ++i) {
      const int64_t y = std::clamp<int64_t>(top + i, 0, image.height - 1);
      for (int j = 0; j < kCount; ++j) {
        const int64_t x = std::clamp<int64_t>(left + j, 0, image.width - 1);
        std::memcpy(copies_[i].data() + j * kChannels,
                    image.pixels.data() + y * stride + x * kChannels, kChannels);
      }
      rows[i] = copies_[i].data();
    }
  }
  Patch(const Patch&) = delete;
  Patch& operator=(const Patch&) = delete;

  std::array<const uint8_t*, kCount> rows;

 private:
  std::array<std::array<uint8_t, kCount * kChannels>, kCount> copies_;
};

/// One pixel at (x, y), which lies inside the image; pixel centers are at halves.
template <class Kernel, int kChannels>
void sample(const Image& image, double x, double y, uint8_t* out) {
  constexpr int kCount = Kernel::kCount;
  const auto left = static_cast<int64_t>(x + 0.5) - 1;  // floor(x - 0.5)
  const auto top = static_cast<int64_t>(y + 0.5) - 1;
  const auto across = Kernel::weights(static_cast<float>(x - 0.5 - static_cast<double>(left)));
  const auto down = Kernel::weights(static_cast<float>(y - 0.5 - static_cast<double>(top)));
  constexpr int64_t kBefore = kCount / 2 - 1;
  const Patch<kCount, kChannels> patch(image, left - kBefore, top - kBefore);
  std::array<float, kCount * kChannels> columns{};
  for (int i = 0; i < kCount; ++i) {
    for (int k = 0; k < kCount * kChannels; ++k) columns[k] += down[i] * patch.rows[i][k];
  }
  for (int c = 0; c < kChannels; ++c) {
    float sum = kRoundingSlack;
    for (int j = 0; j < kCount; ++j) sum += across[j] * columns[j * kChannels + c];
    out[c] = static_cast<uint8_t>(std::clamp(sum, 0.0F, 255.0F));
  }
}

template <class Kernel, int kChannels>
void sample_all(const Image& image, const Affine& from, const Color& fill, Image& result) {
  const auto width = static_cast<double>(image.width);
  const auto height = static_cast<double>(image.height);
  uint8_t* out = result.pixels.data();
  for (int64_t row = 0; row < image.height; ++row) {
    const double y = static_cast<double>(row) + 0.5;
    for (int64_t column = 0; column < image.width; ++column, out += kChannels) {
      const double x = static_cast<double>(column) + 0.5;
      const double at_x = from.a * x + from.b * y + from.c;
      const double at_y = from.d * x + from.e * y + from.f;
      if (at_x >= 0 && at_x < width && at_y >= 0 && at_y < height) {
        sample<Kernel, kChannels>(image, at_x, at_y, out);
      } else {
        std::memcpy(out, fill.data(), kChannels);
      }
    }
  }
}

template <class Kernel>
void sample_all(const Image& image, const Affine& from, const Color& fill, Image& result) {
  if (image.channels == 1) {
    sample_all<Kernel, 1>(image, from, fill, result);
  } else {
    sample_all<Kernel, 3>(image, from, fill, result);
  }
}

}  // namespace

Affine rotation(const Image& image, double degrees) {
  const double angle = -degrees * std::numbers::pi / 180;
  const double cosine = fifteen_digits(std::cos(angle));
  const double sine = fifteen_digits(std::sin(angle));
  const double x = static_cast<double>(image.width) / 2;
  const double y = static_cast<double>(image.height) / 2;
  return {cosine, sine,   x - (cosine * x + sine * y),  //
          -sine,  cosine, y - (-sine * x + cosine * y)};
}

Image transform(const Image& image, const Affine& from, Interpolation interpolation,
                const Color& fill) {
  Image result{image.width, image.height, image.channels, {}};
  result.pixels.resize(image.pixels.size());
  if (interpolation == Interpolation::kBicubic) {
    sample_all<Cubic>(image, from, fill, result);
  } else {
    sample_all<Linear>(image, from, fill, result);
  }
  return result;
}

}  // namespace adjoin::data
