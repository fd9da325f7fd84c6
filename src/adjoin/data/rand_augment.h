#pragma once

// RandAugment, Cubuk et al. 2019 (arXiv:1909.13719): a few operations drawn from a list, all of one
// strength. The list, and how a strength becomes an angle or a factor, are timm's. Of use inside
// data only.

#include <span>
#include <string_view>

#include "adjoin/data/augment.h"

namespace adjoin::data {

struct AugmentOperation {
  std::string_view name;  ///< timm's
  /// What apply takes, at a strength from 0 to 10: an angle, a factor, a number of bits.
  double (*argument)(double strength, bool is_increasing, Rng& rng);
  void (*apply)(Image& image, double argument, Interpolation interpolation);
};

/// The 15 that are drawn from.
std::span<const AugmentOperation> augment_operations();

/// What the operations leave uncovered is filled with: near the mean color of photographs, so that
/// it is near 0 for the network.
inline constexpr std::array<uint8_t, 3> kFillColor = {124, 116, 104};
inline constexpr std::array<uint8_t, 3> kFillGrey = {128, 128, 128};

/// `interpolation` is used where pixels move; kRandom: drawn for each operation.
void apply_rand_augment(const RandAugment& settings, TrainInterpolation interpolation, Image& image,
                        Rng& rng);

/// kRandom decided.
Interpolation draw_interpolation(TrainInterpolation interpolation, Rng& rng);

}  // namespace adjoin::data
