#include "adjoin/data/transform.h"

#include <cmath>

#include "adjoin/data/crop.h"

namespace adjoin::data {
namespace {

torch::Tensor per_channel(const std::vector<double>& values) {
  return torch::tensor(values, torch::kFloat32).view({-1, 1, 1});
}

}  // namespace

Image eval_image(const Image& image, const Preprocessing& preprocessing, int64_t img_size,
                 std::string_view origin) {
  const auto side =
      static_cast<int64_t>(std::floor(static_cast<double>(img_size) / preprocessing.crop_pct));
  return middle_square(image, side, img_size, preprocessing.interpolation, origin);
}

torch::Tensor eval_input(const Image& image, const Preprocessing& preprocessing, int64_t img_size,
                         std::string_view origin) {
  const Image cropped = eval_image(image, preprocessing, img_size, origin);
  const auto pixels = torch::tensor(at::ArrayRef<uint8_t>(cropped.pixels), torch::kUInt8)
                          .view({cropped.height, cropped.width, cropped.channels});
  const auto values = pixels.permute({2, 0, 1}).to(torch::kFloat32).div(255);  // (C, H, W)
  return normalised(values, preprocessing).contiguous();
}

torch::Tensor normalised(const torch::Tensor& values, const Preprocessing& preprocessing) {
  return (values - per_channel(preprocessing.mean)) / per_channel(preprocessing.std);
}

torch::Tensor denormalised(const torch::Tensor& values, const Preprocessing& preprocessing) {
  return values * per_channel(preprocessing.std) + per_channel(preprocessing.mean);
}

}  // namespace adjoin::data
