// Images read and transformed by threads, a few batches ahead of their use.

#include <algorithm>
#include <cstring>
#include <deque>

#include "adjoin/data/pixel_source.h"
#include "adjoin/data/prefetch.h"

namespace adjoin::data {
namespace {

class StreamingSource : public PixelSource {
 public:
  StreamingSource(const Split& split, const LoaderOptions& options, const Sampler& sampler)
      : split_(split),
        options_(options),
        sampler_(sampler),
        reader_(split, options, false),
        prefetcher_(options.workers) {}

  void begin(int64_t step) override {
    prefetcher_.clear();
    ahead_.clear();
    step_ = step;
    if (options_.workers > 0) push_ahead();
  }

  PixelBatch next() override {
    if (ahead_.empty()) push();
    const std::shared_ptr<Job> job = std::move(ahead_.front());
    ahead_.pop_front();
    prefetcher_.pop();
    if (options_.workers > 0) push_ahead();
    for (const std::vector<int64_t>& met : job->broken) {
      job->batch.broken.insert(job->batch.broken.end(), met.begin(), met.end());
    }
    return std::move(job->batch);
  }

 private:
  /// What the tasks of a batch write to, each at its own place.
  struct Job {
    int64_t epoch;
    PixelBatch batch;
    std::vector<std::vector<int64_t>> broken;  // met by each task
  };

  /// Two batches, or more where these would not give every thread an image to read and another to
  /// go on with.
  void push_ahead() {
    constexpr int64_t kBatches = 2;
    int64_t images = 0;
    for (const auto& job : ahead_) images += static_cast<int64_t>(job->batch.samples.size());
    while (step_ < sampler_.steps() &&
           (static_cast<int64_t>(ahead_.size()) < kBatches || images < 2 * options_.workers)) {
      push();
      images += static_cast<int64_t>(ahead_.back()->batch.samples.size());
    }
  }

  void push() {
    auto job = std::make_shared<Job>();
    job->epoch = sampler_.epoch();
    PixelBatch& batch = job->batch;
    batch.samples = sampler_.part(step_++);
    const size_t count = batch.samples.size();
    batch.images.resize(count);
    job->broken.resize(count);
    for (size_t i = 0; i < count; ++i) batch.rows.push_back(static_cast<int64_t>(i));
    // Pinned memory can be copied to a GPU while both sides go on.
    batch.pixels = torch::empty(
        {static_cast<int64_t>(count), options_.channels, options_.img_size, options_.img_size},
        torch::TensorOptions(torch::kUInt8).pinned_memory(options_.device.is_cuda() && count > 0));
    // Threads get plain memory: tensor functions would start threads of their own in each.
    auto* pixels = batch.pixels.data_ptr<uint8_t>();
    ahead_.push_back(job);
    prefetcher_.push(static_cast<int64_t>(count), [this, to = job.get(), pixels](int64_t task) {
      fill(*to, static_cast<size_t>(task), pixels + task * reader_.bytes());
    });
  }

  void fill(Job& job, size_t place, uint8_t* out) const {
    const Sample& sample = job.batch.samples[place];
    // Named by the sample, not by the image that may take its place: that one has its own turn.
    const Rng rng = sample_stream(options_.seed, Stream::kTransform, job.epoch, sample);
    const auto read = [&](int64_t image) { return reader_.read(image, rng, out); };
    const int64_t image =
        first_readable(split_, options_.is_training, sample.image, read, job.broken[place]);
    if (image < 0) std::memset(out, 0, static_cast<size_t>(reader_.bytes()));
    job.batch.images[place] = image;
  }

  const Split& split_;
  const LoaderOptions& options_;
  const Sampler& sampler_;
  ImageReader reader_;
  int64_t step_ = 0;
  std::deque<std::shared_ptr<Job>> ahead_;
  Prefetcher prefetcher_;  // last: its threads end before what they write to
};

}  // namespace

std::unique_ptr<PixelSource> make_streaming_source(const Split& split, const LoaderOptions& options,
                                                   const Sampler& sampler) {
  return std::make_unique<StreamingSource>(split, options, sampler);
}

}  // namespace adjoin::data
