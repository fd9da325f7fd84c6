#pragma once

// How an image becomes the input of a network when it is evaluated: the shorter side resized to
// img_size / crop_pct, the middle cut out, every channel normalised.

#include <vector>

#include "adjoin/core/fields.h"
#include "adjoin/spec/model_spec.h"

namespace adjoin {

enum class Interpolation { kBilinear, kBicubic };

template <>
inline constexpr auto kEnumNames<Interpolation> = std::to_array<EnumName<Interpolation>>(
    {{"bilinear", Interpolation::kBilinear}, {"bicubic", Interpolation::kBicubic}});

struct Preprocessing {
  std::vector<double> mean;  ///< one per channel, of values from 0 to 1
  std::vector<double> std;
  double crop_pct = 1;
  Interpolation interpolation = Interpolation::kBicubic;

  bool operator==(const Preprocessing&) const = default;
};

template <class Visitor>
void fields(Visitor& visit, Preprocessing& preprocessing) {
  visit("mean", preprocessing.mean, Range{-1e3, 1e3});
  visit("std", preprocessing.std, Range{1e-6, 1e3});
  visit("crop_pct", preprocessing.crop_pct, Range{0.05, 1});
  visit("interpolation", preprocessing.interpolation);
}

/// What the published weights of the model, or else of its family, were evaluated with.
Preprocessing default_preprocessing(const ModelSpec& spec);

}  // namespace adjoin
