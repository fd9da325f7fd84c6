#include "adjoin/spec/preprocessing.h"

namespace adjoin {

Preprocessing default_preprocessing(const ModelSpec& spec) {
  const auto channels = static_cast<size_t>(spec.in_chans);
  Preprocessing result{std::vector(channels, 0.5), std::vector(channels, 0.5)};
  // timm's ViTs (AugReg) were trained on values from -1 to 1, all others on ImageNet's statistics.
  if (channels == 3 && !spec.name.starts_with("vit_")) {
    result.mean = {0.485, 0.456, 0.406};
    result.std = {0.229, 0.224, 0.225};
  }
  // Published weights of images this small do not exist; a crop would only lose their border.
  constexpr int64_t kSmall = 96;
  if (spec.img_size > kSmall) result.crop_pct = spec.img_size >= 384 ? 1.0 : 0.9;
  return result;
}

}  // namespace adjoin
