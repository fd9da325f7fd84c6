// The C++ side of data.py: keeps JPEG files in memory and times passes of the training transform
// over them on request. One JSON object per line in and out.
#include <chrono>
#include <fstream>

#include "adjoin/core/error.h"
#include "adjoin/data/augment.h"
#include "adjoin/data/codec.h"
#include "adjoin/spec/preprocessing.h"
#include "adjoin/tensor/device.h"
#include "bench/worker.h"

namespace adjoin {
namespace {

constexpr int64_t kSize = 224;

data::TrainInterpolation interpolation_of(const Json& request) {
  return request.at("interpolation").get<std::string>() == "bicubic"
             ? data::TrainInterpolation::kBicubic
             : data::TrainInterpolation::kBilinear;
}

class Normalizer {
 public:
  /// (3, 224, 224), float32
  torch::Tensor operator()(data::Image& image) const {
    const auto pixels = torch::from_blob(image.pixels.data(), {kSize, kSize, 3}, torch::kUInt8);
    auto values =
        pixels.permute({2, 0, 1}).to(torch::kFloat32, false, false, at::MemoryFormat::Contiguous);
    return values.sub_(mean_).div_(std_);
  }

 private:
  static torch::Tensor of_bytes(std::vector<float> values) {
    return torch::tensor(values).view({3, 1, 1}).mul(255);
  }

  torch::Tensor mean_ = of_bytes({0.485F, 0.456F, 0.406F});
  torch::Tensor std_ = of_bytes({0.229F, 0.224F, 0.225F});
};

class Worker {
 public:
  Json load(const Json& request) {
    prepare_torch(1);
    for (const auto& path : request.at("files")) {
      files_.push_back(io::map_file(path.get<std::string>()));
      volatile std::byte sum{};
      for (const std::byte byte : files_.back().bytes) sum = sum ^ byte;  // into memory
    }
    return {{"images", files_.size()}, {"torch", TORCH_VERSION}};
  }

  /// One image cropped to a box that is given, its pixels written to a file.
  Json crop(const Json& request) const {
    const auto& file = files_.at(request.at("image").get<size_t>());
    const auto box = request.at("box").get<std::vector<int64_t>>();
    data::JpegPart part =
        data::JpegFile(file.bytes, file.origin).read({box.at(0), box.at(1), box.at(2), box.at(3)});
    const auto interpolation = interpolation_of(request) == data::TrainInterpolation::kBicubic
                                   ? Interpolation::kBicubic
                                   : Interpolation::kBilinear;
    const data::Image image =
        data::resize(data::with_channels(std::move(part.image), file.origin, 3), part.box, kSize,
                     kSize, interpolation);
    std::ofstream out(request.at("out").get<std::string>(), std::ios::binary);
    out.write(reinterpret_cast<const char*>(image.pixels.data()),
              static_cast<std::streamsize>(image.pixels.size()));
    return {{"bytes", image.pixels.size()}};
  }

  /// A pass over all images.
  Json run(const Json& request) const {
    data::AugmentOptions options;
    options.train_crop_mode = data::CropMode::kRandomResized;
    options.train_interpolation = interpolation_of(request);
    options.color_jitter = 0;
    const data::TrainTransform transform(options, kSize, 3);
    const bool is_normalized = request.at("normalize").get<bool>();
    const auto round = request.at("round").get<uint64_t>();
    const Normalizer normalized;
    double sum = 0;  // so that nothing is left out
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < files_.size(); ++i) {
      data::Image image = transform(files_[i], files_[i].origin, Rng(stream_key(round, {i})));
      sum += is_normalized ? *normalized(image).data_ptr<float>() : image.pixels[0];
    }
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    return {{"ms", elapsed.count()}, {"sum", sum}};
  }

 private:
  std::vector<io::FileBytes> files_;
};

}  // namespace
}  // namespace adjoin

int main() {
  adjoin::Worker worker;
  return adjoin::bench::serve([&](const std::string& op, const adjoin::Json& request) {
    if (op == "load") return worker.load(request);
    return op == "crop" ? worker.crop(request) : worker.run(request);
  });
}
