#pragma once

// How an image is varied in training. Names and defaults are timm's.

#include <optional>
#include <string>
#include <vector>

#include "adjoin/core/fields.h"
#include "adjoin/core/rng.h"
#include "adjoin/data/dataset.h"

namespace adjoin::data {

enum class TrainInterpolation { kRandom, kBilinear, kBicubic };
enum class CropMode { kAuto, kRandomResized, kPad, kNone };
enum class EraseMode { kPixel, kRand, kConst };

}  // namespace adjoin::data

namespace adjoin {

template <>
inline constexpr auto kEnumNames<data::TrainInterpolation> =
    std::to_array<EnumName<data::TrainInterpolation>>(
        {{"random", data::TrainInterpolation::kRandom},
         {"bilinear", data::TrainInterpolation::kBilinear},
         {"bicubic", data::TrainInterpolation::kBicubic}});

template <>
inline constexpr auto kEnumNames<data::CropMode> =
    std::to_array<EnumName<data::CropMode>>({{"auto", data::CropMode::kAuto},
                                             {"rrc", data::CropMode::kRandomResized},
                                             {"pad", data::CropMode::kPad},
                                             {"none", data::CropMode::kNone}});

template <>
inline constexpr auto kEnumNames<data::EraseMode> =
    std::to_array<EnumName<data::EraseMode>>({{"pixel", data::EraseMode::kPixel},
                                              {"rand", data::EraseMode::kRand},
                                              {"const", data::EraseMode::kConst}});

}  // namespace adjoin

namespace adjoin::data {

struct AugmentOptions {
  CropMode train_crop_mode = CropMode::kAuto;
  std::vector<double> scale = {0.08, 1.0};
  std::vector<double> ratio = {3.0 / 4, 4.0 / 3};
  int64_t crop_padding = 4;
  TrainInterpolation train_interpolation = TrainInterpolation::kRandom;
  double hflip = 0.5;
  double color_jitter = 0.4;
  std::string aa;
  double reprob = 0;
  EraseMode remode = EraseMode::kPixel;
  int64_t recount = 1;
  double mixup = 0;
  double cutmix = 0;
  double mixup_prob = 1;
  double mixup_switch_prob = 0.5;
  double smoothing = 0.1;
  int64_t aug_repeats = 1;
};

template <class Visitor>
void fields(Visitor& visit, AugmentOptions& options) {
  visit("train_crop_mode", options.train_crop_mode, {},
        "auto: pad up to 64 pixels, else rrc (random-resized-crop); or none");
  visit("scale", options.scale, Range{1e-3, 1}, "random-resized-crop: least and most area");
  visit("ratio", options.ratio, Range{1e-2, 1e2},
        "random-resized-crop: least and most width/height");
  visit("crop_padding", options.crop_padding, Range{0, 64},
        "pad: pixels on every side before a crop");
  visit("train_interpolation", options.train_interpolation, {}, "random, bilinear or bicubic");
  visit("hflip", options.hflip, Range{0, 1}, "chance of a horizontal flip");
  visit("color_jitter", options.color_jitter, Range{0, 1},
        "brightness, contrast and saturation, with random-resized-crop and without --aa");
  visit("aa", options.aa, {}, "RandAugment, written as in timm: rand-m9-mstd0.5-inc1; or none");
  visit("reprob", options.reprob, Range{0, 1}, "chance of random erasing");
  visit("remode", options.remode, {}, "random erasing fills with: pixel, rand or const");
  visit("recount", options.recount, Range{1, 16}, "random erasing: at most so many rectangles");
  visit("mixup", options.mixup, Range{0, 100}, "mixup alpha; 0: off");
  visit("cutmix", options.cutmix, Range{0, 100}, "cutmix alpha; 0: off");
  visit("mixup_prob", options.mixup_prob, Range{0, 1}, "chance that a batch is mixed");
  visit("mixup_switch_prob", options.mixup_switch_prob, Range{0, 1},
        "chance of cutmix where both are on");
  visit("smoothing", options.smoothing, Range{0, 0.99}, "label smoothing");
  visit(
      "aug_repeats", options.aug_repeats, Range{1, 16},
      "repeated augmentation: times an image stands in the order of an epoch of the usual length");
}

/// RandAugment as its timm string says it, "rand-m9-mstd0.5-inc1"; parsed once.
struct RandAugment {
  double magnitude = 10;       ///< m, 0 to mmax
  double magnitude_std = 0;    ///< mstd; infinite: uniform from 0 to m
  double magnitude_max = 10;   ///< mmax
  int64_t layers = 2;          ///< n
  double probability = 0.5;    ///< p, of each operation
  bool is_increasing = false;  ///< inc1: every operation is stronger at a higher magnitude
};

/// Error(kConfig) saying which part of the string is wrong.
RandAugment parse_rand_augment(const std::string& text);

/// What one image goes through on its way into a training batch.
class TrainTransform {
 public:
  /// Error(kConfig) when an option is out of place.
  TrainTransform(const AugmentOptions& options, int64_t img_size, int64_t channels);

  /// Decoded, cropped to img_size x img_size, flipped, colours changed. Everything random is drawn
  /// from `rng`, so the result is a function of image and rng.
  Image operator()(const Stored& stored, const std::string& origin, Rng rng) const;

  /// Whether the images need no more than padding, cropping and flipping, which can be done in
  /// whole batches where they lie.
  bool is_batchable() const;

 private:
  Image random_resized(const Stored& stored, const std::string& origin, Interpolation interpolation,
                       Rng& rng) const;
  Image cropped(const Stored& stored, const std::string& origin, Rng& rng) const;

  AugmentOptions options_;
  std::optional<RandAugment> rand_augment_;
  int64_t img_size_;
  int64_t channels_;
};

/// kAuto decided: padding for images of up to 64 pixels, else random-resized-crop.
CropMode crop_mode(const AugmentOptions& options, int64_t img_size);

}  // namespace adjoin::data
