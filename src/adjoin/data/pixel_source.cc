#include "adjoin/data/pixel_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "adjoin/core/error.h"
#include "adjoin/data/transform.h"

namespace adjoin::data {

ImageReader::ImageReader(const Split& split, const LoaderOptions& options, bool is_whole)
    : split_(split),
      preprocessing_(options.preprocessing),
      img_size_(options.img_size),
      channels_(options.channels) {
  if (!options.is_training) return;
  if (is_whole) {
    preprocessing_.crop_pct = 1;  // the crop of training comes later
  } else {
    transform_.emplace_back(options.augment, img_size_, channels_);
  }
}

std::string ImageReader::read(int64_t image, Rng rng, uint8_t* out) const {
  Image result;
  try {
    result = transformed(image, rng);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kData && e.kind() != ErrorKind::kIo) throw;
    return e.what();
  }
  if (result.width != img_size_ || result.height != img_size_ || result.channels != channels_ ||
      static_cast<int64_t>(result.pixels.size()) != bytes()) {
    throw Error(ErrorKind::kInternal,
                fmt::format("{}: became {} x {} pixels of {} channels, not {} x {} of {}",
                            split_.describe(image), result.width, result.height, result.channels,
                            img_size_, img_size_, channels_));
  }
  for (int64_t c = 0; c < channels_; ++c) {
    const uint8_t* from = result.pixels.data() + c;
    for (int64_t i = 0; i < img_size_ * img_size_; ++i) *out++ = from[i * channels_];
  }
  return {};
}

Image ImageReader::transformed(int64_t image, Rng rng) const {
  const Stored stored = split_.read(image);
  const std::string origin = split_.describe(image);
  if (!transform_.empty()) return transform_[0](stored, origin, rng);
  return eval_image(decoded(stored, origin, channels_), preprocessing_, img_size_, origin);
}

int64_t first_readable(const Split& split, bool is_training, int64_t wanted,
                       const std::function<std::string(int64_t)>& why_not,
                       std::vector<int64_t>& broken) {
  constexpr int64_t kMostTries = 100;
  const int64_t tries = is_training ? std::min(kMostTries, split.size()) : 1;
  std::string reason;
  for (int64_t i = 0; i < tries; ++i) {
    const int64_t image = (wanted + i) % split.size();
    reason = why_not(image);
    if (reason.empty()) return image;
    broken.push_back(image);
  }
  if (!is_training) return -1;
  throw Error(ErrorKind::kData,
              fmt::format("{}: {} images in a row cannot be read, the last because: {}", split.name,
                          tries, reason));
}

}  // namespace adjoin::data
