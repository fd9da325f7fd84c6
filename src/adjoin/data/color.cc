#include "adjoin/data/color.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace adjoin::data {
namespace {

using Table = std::array<uint8_t, 256>;
using Histogram = std::array<int64_t, 256>;

/// Between `from` and `to`, or beyond: in single precision and rounded down, as PIL blends.
uint8_t blend(int from, int to, float share) {
  const float value = static_cast<float>(from) + share * static_cast<float>(to - from);
  return static_cast<uint8_t>(std::clamp(value, 0.0F, 255.0F));
}

template <class ValueOf>
Table table_of(ValueOf value_of) {
  Table table;
  for (int i = 0; i < 256; ++i) {
    table[static_cast<size_t>(i)] = static_cast<uint8_t>(std::clamp<int64_t>(value_of(i), 0, 255));
  }
  return table;
}

void map_all(Image& image, const Table& table) {
  for (uint8_t& value : image.pixels) value = table[value];
}

void map_channel(Image& image, int64_t channel, const Table& table) {
  const auto step = static_cast<size_t>(image.channels);
  for (auto i = static_cast<size_t>(channel); i < image.pixels.size(); i += step) {
    image.pixels[i] = table[image.pixels[i]];
  }
}

Histogram histogram_of(const Image& image, int64_t channel) {
  Histogram counts{};
  const auto step = static_cast<size_t>(image.channels);
  for (auto i = static_cast<size_t>(channel); i < image.pixels.size(); i += step) {
    ++counts[image.pixels[i]];
  }
  return counts;
}

/// ITU-R 601, as in PIL.
uint8_t luma(const uint8_t* rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595U + rgb[1] * 38470U + rgb[2] * 7471U + 0x8000U) >> 16);
}

int mean_grey(const Image& image) {
  const auto step = static_cast<size_t>(image.channels);
  int64_t sum = 0;
  for (size_t i = 0; i < image.pixels.size(); i += step) {
    sum += step == 1 ? image.pixels[i] : luma(&image.pixels[i]);
  }
  const int64_t count = image.width * image.height;
  return static_cast<int>(static_cast<double>(sum) / static_cast<double>(count) + 0.5);
}

/// Inside, the mean of 3 x 3 pixels with the middle one counting 5 times; the rim stays.
std::vector<uint8_t> smoothed(const Image& image) {
  constexpr int kWeights = 13;
  std::vector<uint8_t> result = image.pixels;
  const int64_t pixel = image.channels;
  const int64_t row = image.width * pixel;
  for (int64_t y = 1; y + 1 < image.height; ++y) {
    const uint8_t* in = image.pixels.data() + y * row;
    uint8_t* out = result.data() + y * row;
    for (int64_t i = pixel; i < row - pixel; ++i) {
      const auto three = [&](const uint8_t* at) { return at[-pixel] + at[0] + at[pixel]; };
      const int sum = three(in + i - row) + three(in + i) + three(in + i + row) + 4 * in[i];
      out[i] = static_cast<uint8_t>((2 * sum + kWeights) / (2 * kWeights));
    }
  }
  return result;
}

}  // namespace

void adjust_brightness(Image& image, double factor) {
  const auto share = static_cast<float>(factor);
  map_all(image, table_of([&](int value) { return blend(0, value, share); }));
}

void adjust_contrast(Image& image, double factor) {
  const auto share = static_cast<float>(factor);
  const int mean = mean_grey(image);
  map_all(image, table_of([&](int value) { return blend(mean, value, share); }));
}

void adjust_saturation(Image& image, double factor) {
  if (image.channels == 1) return;
  const auto share = static_cast<float>(factor);
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    uint8_t* rgb = &image.pixels[i];
    const int grey = luma(rgb);
    for (int c = 0; c < 3; ++c) rgb[c] = blend(grey, rgb[c], share);
  }
}

void adjust_sharpness(Image& image, double factor) {
  const auto share = static_cast<float>(factor);
  const std::vector<uint8_t> smooth = smoothed(image);
  for (size_t i = 0; i < smooth.size(); ++i) {
    image.pixels[i] = blend(smooth[i], image.pixels[i], share);
  }
}

void auto_contrast(Image& image) {
  for (int64_t channel = 0; channel < image.channels; ++channel) {
    const Histogram counts = histogram_of(image, channel);
    const auto is_used = [](int64_t count) { return count > 0; };
    const auto lowest = std::find_if(counts.begin(), counts.end(), is_used) - counts.begin();
    const auto highest =
        255 - (std::find_if(counts.rbegin(), counts.rend(), is_used) - counts.rbegin());
    if (highest <= lowest) continue;
    const double scale = 255.0 / static_cast<double>(highest - lowest);
    const double offset = -static_cast<double>(lowest) * scale;
    map_channel(image, channel,
                table_of([&](int value) { return static_cast<int64_t>(value * scale + offset); }));
  }
}

void equalize(Image& image) {
  for (int64_t channel = 0; channel < image.channels; ++channel) {
    const Histogram counts = histogram_of(image, channel);
    const auto last =
        std::find_if(counts.rbegin(), counts.rend(), [](int64_t count) { return count > 0; });
    if (last == counts.rend()) continue;
    const int64_t step = (image.width * image.height - *last) / 255;
    if (step == 0) continue;
    int64_t below = step / 2;
    map_channel(image, channel, table_of([&](int value) {
                  return std::exchange(below, below + counts[static_cast<size_t>(value)]) / step;
                }));
  }
}

void invert(Image& image) {
  map_all(image, table_of([](int value) { return 255 - value; }));
}

void posterize(Image& image, int bits) {
  const int kept = ~((1 << (8 - std::clamp(bits, 0, 8))) - 1);
  map_all(image, table_of([&](int value) { return value & kept; }));
}

void solarize(Image& image, int threshold) {
  map_all(image, table_of([&](int value) { return value < threshold ? value : 255 - value; }));
}

void solarize_add(Image& image, int addend) {
  map_all(image, table_of([&](int value) { return value < 128 ? value + addend : value; }));
}

void jitter_colors(Image& image, double strength, Rng& rng) {
  std::array steps = {adjust_brightness, adjust_contrast, adjust_saturation};
  for (size_t i = steps.size(); i > 1; --i) {
    std::swap(steps[i - 1], steps[static_cast<size_t>(rng.below(static_cast<int64_t>(i)))]);
  }
  for (const auto step : steps) step(image, rng.uniform(std::max(0.0, 1 - strength), 1 + strength));
}

}  // namespace adjoin::data
