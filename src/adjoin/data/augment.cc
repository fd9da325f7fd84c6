#include "adjoin/data/augment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "adjoin/core/error.h"
#include "adjoin/data/codec.h"
#include "adjoin/data/color.h"
#include "adjoin/data/crop.h"
#include "adjoin/data/rand_augment.h"

namespace adjoin::data {
namespace {

constexpr int64_t kLargestPadded = 64;

void check_pair(std::string_view name, const std::vector<double>& pair, double most) {
  const bool is_right = pair.size() == 2 && pair[0] > 0 && pair[0] <= pair[1] && pair[1] <= most;
  if (is_right) return;
  throw Error(ErrorKind::kConfig,
              fmt::format("{}: {} must be two numbers above 0, the smaller one first{}", name,
                          to_json(pair).dump(), most == 1 ? ", up to 1" : ""));
}

void check_number(std::string_view name, double value, double least, double most) {
  if (value >= least && value <= most) return;
  throw Error(ErrorKind::kConfig,
              fmt::format("{}: {} must be from {} to {}", name, value, least, most));
}

/// How much smaller than it is a JPEG can be decoded so that the box still has `side` pixels.
int shrink_for(const Box& box, int64_t side) {
  constexpr int kMost = 8;
  int shrink = 1;
  while (shrink < kMost && std::min(box.width, box.height) >= 2 * shrink * side) shrink *= 2;
  return shrink;
}

}  // namespace

CropMode crop_mode(const AugmentOptions& options, int64_t img_size) {
  if (options.train_crop_mode != CropMode::kAuto) return options.train_crop_mode;
  return img_size <= kLargestPadded ? CropMode::kPad : CropMode::kRandomResized;
}

TrainTransform::TrainTransform(const AugmentOptions& options, int64_t img_size, int64_t channels)
    : options_(options), img_size_(img_size), channels_(channels) {
  if (channels != 1 && channels != 3) {
    throw Error(ErrorKind::kConfig,
                fmt::format("in_chans: images have 1 or 3 channels, not {}", channels));
  }
  check_number("img_size", static_cast<double>(img_size), 1, 8192);
  check_pair("scale", options.scale, 1);
  check_pair("ratio", options.ratio, 1e6);
  check_number("crop_padding", static_cast<double>(options.crop_padding), 0, 8192);
  check_number("hflip", options.hflip, 0, 1);
  check_number("color_jitter", options.color_jitter, 0, 1);
  if (!options.aa.empty() && options.aa != "none") rand_augment_ = parse_rand_augment(options.aa);
}

bool TrainTransform::is_batchable() const {
  return crop_mode(options_, img_size_) != CropMode::kRandomResized && !rand_augment_;
}

/// Of a JPEG only the box is decoded.
Image TrainTransform::random_resized(const Stored& stored, const std::string& origin,
                                     Interpolation interpolation, Rng& rng) const {
  const auto draw_box = [&](int64_t width, int64_t height) {
    return random_resized_box(width, height, options_.scale, options_.ratio, rng);
  };
  const auto* file = std::get_if<io::FileBytes>(&stored);
  if (file != nullptr && looks_like_jpeg(file->bytes)) {
    JpegFile jpeg(file->bytes, origin);
    const Box box = draw_box(jpeg.width(), jpeg.height());
    JpegPart part = jpeg.read(box, shrink_for(box, img_size_));
    return resize(with_channels(std::move(part.image), origin, channels_), part.box, img_size_,
                  img_size_, interpolation);
  }
  const Image image = decoded(stored, origin, channels_);
  return resize(image, draw_box(image.width, image.height), img_size_, img_size_, interpolation);
}

Image TrainTransform::cropped(const Stored& stored, const std::string& origin, Rng& rng) const {
  const Interpolation interpolation = draw_interpolation(options_.train_interpolation, rng);
  const CropMode mode = crop_mode(options_, img_size_);
  if (mode == CropMode::kRandomResized) return random_resized(stored, origin, interpolation, rng);
  Image image = decoded(stored, origin, channels_);
  if (image.width != img_size_ || image.height != img_size_) {
    image = middle_square(image, img_size_, img_size_, interpolation, origin);
  }
  if (mode == CropMode::kNone) return image;
  return random_padded_crop(image, img_size_, options_.crop_padding, rng);
}

Image TrainTransform::operator()(const Stored& stored, const std::string& origin, Rng rng) const {
  Image image = cropped(stored, origin, rng);
  if (rng.chance(options_.hflip)) flip(image);
  if (rand_augment_) {
    apply_rand_augment(*rand_augment_, options_.train_interpolation, image, rng);
  } else if (crop_mode(options_, img_size_) == CropMode::kRandomResized) {
    if (options_.color_jitter > 0) jitter_colors(image, options_.color_jitter, rng);
  }
  return image;
}

}  // namespace adjoin::data
