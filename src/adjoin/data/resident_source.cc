// A small set, decoded once and kept on the device.

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "adjoin/data/pixel_source.h"
#include "adjoin/data/prefetch.h"

namespace adjoin::data {
namespace {

class ResidentSource : public PixelSource {
 public:
  ResidentSource(const Split& split, const LoaderOptions& options, const Sampler& sampler)
      : split_(split), options_(options), sampler_(sampler) {}

  void begin(int64_t step) override { step_ = step; }

  PixelBatch next() override {
    if (!pixels_.defined()) pixels_ = decode();
    PixelBatch batch;
    batch.samples = sampler_.part(step_++);
    batch.pixels = pixels_;
    const auto why_not = [&](int64_t image) {
      const auto found = broken_.find(image);
      return found == broken_.end() ? std::string() : found->second;
    };
    for (const Sample& sample : batch.samples) {
      const int64_t image =
          first_readable(split_, options_.is_training, sample.image, why_not, batch.broken);
      batch.images.push_back(image);
      batch.rows.push_back(image < 0 ? sample.image : image);  // a broken image's row is black
    }
    return batch;
  }

 private:
  torch::Tensor decode() {
    constexpr int64_t kImagesPerTask = 64;
    const ImageReader reader(split_, options_, true);
    const auto pixels = torch::empty(
        {split_.size(), options_.channels, options_.img_size, options_.img_size}, torch::kUInt8);
    auto* memory = pixels.data_ptr<uint8_t>();
    std::map<int64_t, std::string> broken;
    std::mutex mutex;
    const auto read = [&](int64_t image) {
      uint8_t* out = memory + image * reader.bytes();
      const std::string reason = reader.read(image, Rng(0), out);  // nothing is drawn
      if (reason.empty()) return;
      std::memset(out, 0, static_cast<size_t>(reader.bytes()));
      const std::lock_guard lock(mutex);
      broken.emplace(image, reason);
    };
    Prefetcher prefetcher(options_.workers);
    prefetcher.push((split_.size() + kImagesPerTask - 1) / kImagesPerTask, [&](int64_t task) {
      const int64_t end = std::min(split_.size(), (task + 1) * kImagesPerTask);
      for (int64_t image = task * kImagesPerTask; image < end; ++image) read(image);
    });
    prefetcher.pop();
    broken_ = std::move(broken);
    return pixels.to(options_.device);
  }

  const Split& split_;
  const LoaderOptions& options_;
  const Sampler& sampler_;
  int64_t step_ = 0;
  torch::Tensor pixels_;                   // (n, C, H, W) uint8, on the device
  std::map<int64_t, std::string> broken_;  // and why
};

}  // namespace

std::unique_ptr<PixelSource> make_resident_source(const Split& split, const LoaderOptions& options,
                                                  const Sampler& sampler) {
  return std::make_unique<ResidentSource>(split, options, sampler);
}

}  // namespace adjoin::data
