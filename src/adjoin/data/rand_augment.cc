#include "adjoin/data/rand_augment.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "adjoin/data/affine.h"
#include "adjoin/data/color.h"

namespace adjoin::data {
namespace {

constexpr double kFullStrength = 10;

double either_sign(double value, Rng& rng) { return rng.chance(0.5) ? -value : value; }

double no_argument(double, bool, Rng&) { return 0; }

/// Up to `kPercent` hundredths, in either direction.
template <int kPercent>
double up_to(double strength, bool, Rng& rng) {
  return either_sign(strength / kFullStrength * (kPercent / 100.0), rng);
}

double enhance_factor(double strength, bool is_increasing, Rng& rng) {
  if (!is_increasing) return strength / kFullStrength * 1.8 + 0.1;
  return std::max(0.1, 1 + either_sign(strength / kFullStrength * 0.9, rng));
}

double posterize_bits(double strength, bool is_increasing, Rng&) {
  const double bits = std::trunc(strength / kFullStrength * 4);
  return is_increasing ? 4 - bits : bits;
}

double solarize_threshold(double strength, bool is_increasing, Rng&) {
  const double threshold = std::min(256.0, std::trunc(strength / kFullStrength * 256));
  return is_increasing ? 256 - threshold : threshold;
}

double solarize_addend(double strength, bool, Rng&) {
  return std::min(128.0, std::trunc(strength / kFullStrength * 110));
}

void move_pixels(Image& image, const Affine& from, Interpolation interpolation) {
  image = transform(image, from, interpolation, image.channels == 1 ? kFillGrey : kFillColor);
}

template <void (*kChange)(Image&)>
void plain(Image& image, double, Interpolation) {
  kChange(image);
}

template <void (*kChange)(Image&, int)>
void by_integer(Image& image, double argument, Interpolation) {
  kChange(image, static_cast<int>(argument));
}

template <void (*kChange)(Image&, double)>
void by_factor(Image& image, double argument, Interpolation) {
  kChange(image, argument);
}

void rotate(Image& image, double degrees, Interpolation interpolation) {
  if (degrees != 0) move_pixels(image, rotation(image, degrees), interpolation);
}

void shear_x(Image& image, double slope, Interpolation interpolation) {
  move_pixels(image, {.b = slope}, interpolation);
}

void shear_y(Image& image, double slope, Interpolation interpolation) {
  move_pixels(image, {.d = slope}, interpolation);
}

void translate_x(Image& image, double share, Interpolation interpolation) {
  move_pixels(image, {.c = share * static_cast<double>(image.width)}, interpolation);
}

void translate_y(Image& image, double share, Interpolation interpolation) {
  move_pixels(image, {.f = share * static_cast<double>(image.height)}, interpolation);
}

constexpr auto kOperations = std::to_array<AugmentOperation>({
    {"AutoContrast", no_argument, plain<auto_contrast>},
    {"Equalize", no_argument, plain<equalize>},
    {"Invert", no_argument, plain<invert>},
    {"Rotate", up_to<3000>, rotate},
    {"Posterize", posterize_bits, by_integer<posterize>},
    {"Solarize", solarize_threshold, by_integer<solarize>},
    {"SolarizeAdd", solarize_addend, by_integer<solarize_add>},
    {"Color", enhance_factor, by_factor<adjust_saturation>},
    {"Contrast", enhance_factor, by_factor<adjust_contrast>},
    {"Brightness", enhance_factor, by_factor<adjust_brightness>},
    {"Sharpness", enhance_factor, by_factor<adjust_sharpness>},
    {"ShearX", up_to<30>, shear_x},
    {"ShearY", up_to<30>, shear_y},
    {"TranslateXRel", up_to<45>, translate_x},
    {"TranslateYRel", up_to<45>, translate_y},
});

double draw_strength(const RandAugment& settings, Rng& rng) {
  double strength = settings.magnitude;
  if (std::isinf(settings.magnitude_std)) {
    strength = rng.uniform(0, settings.magnitude);
  } else if (settings.magnitude_std > 0) {
    strength += settings.magnitude_std * rng.normal();
  }
  return std::clamp(strength, 0.0, settings.magnitude_max);
}

}  // namespace

std::span<const AugmentOperation> augment_operations() { return kOperations; }

Interpolation draw_interpolation(TrainInterpolation interpolation, Rng& rng) {
  switch (interpolation) {
    case TrainInterpolation::kBilinear: return Interpolation::kBilinear;
    case TrainInterpolation::kBicubic: return Interpolation::kBicubic;
    case TrainInterpolation::kRandom: break;
  }
  return rng.chance(0.5) ? Interpolation::kBilinear : Interpolation::kBicubic;
}

void apply_rand_augment(const RandAugment& settings, TrainInterpolation interpolation, Image& image,
                        Rng& rng) {
  for (int64_t layer = 0; layer < settings.layers; ++layer) {
    const auto& operation = kOperations[static_cast<size_t>(rng.below(kOperations.size()))];
    if (!rng.chance(settings.probability)) continue;
    const double strength = draw_strength(settings, rng);
    const double argument = operation.argument(strength, settings.is_increasing, rng);
    operation.apply(image, argument, draw_interpolation(interpolation, rng));
  }
}

}  // namespace adjoin::data
