#include "adjoin/spec/preprocessing.h"

#include <algorithm>

#include "adjoin/spec/catalog.h"

namespace adjoin {

Preprocessing default_preprocessing(const ModelSpec& spec) {
  const auto channels = static_cast<size_t>(spec.in_chans);
  Preprocessing result{std::vector(channels, 0.5), std::vector(channels, 0.5)};
  // timm's ViTs (AugReg) were trained on values from -1 to 1, all others on ImageNet's statistics.
  const std::vector<std::string> names = catalog_names();
  const std::string name = spec.name.substr(0, spec.name.find('.'));
  const bool is_augreg =
      name.starts_with("vit_") && std::find(names.begin(), names.end(), name) != names.end();
  if (channels == 3 && !is_augreg) {
    result.mean = {0.485, 0.456, 0.406};
    result.std = {0.229, 0.224, 0.225};
  }
  // Published weights of images this small do not exist; a crop would only lose their border.
  constexpr int64_t kSmall = 96;
  if (spec.img_size > kSmall) result.crop_pct = spec.img_size >= 384 ? 1.0 : 0.9;
  return result;
}

}  // namespace adjoin
