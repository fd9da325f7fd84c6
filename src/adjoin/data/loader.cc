#include "adjoin/data/loader.h"

#include <fmt/format.h>

#include <set>

#include "adjoin/core/error.h"
#include "adjoin/data/batch_ops.h"
#include "adjoin/data/pixel_source.h"
#include "adjoin/data/sampler.h"

namespace adjoin::data {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorKind::kConfig, what); }

void check(const Split& split, const LoaderOptions& options) {
  if (options.batch_size < 1)
    refuse(fmt::format("batch_size {}: must be 1 or more", options.batch_size));
  if (options.workers < 0) refuse(fmt::format("workers {}: must be 0 or more", options.workers));
  if (options.world < 1 || options.rank < 0 || options.rank >= options.world) {
    throw Error(ErrorKind::kInternal,
                fmt::format("loader: rank {} of {}", options.rank, options.world));
  }
  if (split.size() == 0) throw Error(ErrorKind::kData, split.name + ": holds no image");
  const auto classes = static_cast<int64_t>(split.classes.size());
  for (const int64_t label : split.labels) {
    if (label >= 0 && label < classes) continue;
    throw Error(ErrorKind::kData,
                fmt::format("{}: label {}, must be from 0 to {}", split.name, label, classes - 1));
  }
  if (!options.is_training) return;
  const int64_t batch = std::min(options.batch_size, split.size());
  const bool is_mixed = options.augment.mixup > 0 || options.augment.cutmix > 0;
  const int64_t least = is_mixed ? 2 * options.world - 1 : options.world;  // the last may be alone
  if (batch < least) {
    refuse(fmt::format("a batch of {} images for {} processes: must be {} or more{}", batch,
                       options.world, least, is_mixed ? ", since they are mixed in pairs" : ""));
  }
}

SamplerOptions sampler_options(const Split& split, const LoaderOptions& options) {
  return {split.size(), options.batch_size, options.is_training, options.augment.aug_repeats,
          options.seed, options.rank,       options.world};
}

/// Whether the set is kept on the device as pixels.
bool is_resident(const Split& split, const LoaderOptions& options) {
  constexpr int64_t kMostSide = 64;
  constexpr int64_t kMostBytes = int64_t{2} << 30;
  if (options.img_size > kMostSide) return false;
  const int64_t bytes = options.channels * options.img_size * options.img_size;
  if (split.size() > kMostBytes / bytes) return false;
  return !options.is_training ||
         TrainTransform(options.augment, options.img_size, options.channels).is_batchable();
}

bool is_padded(const LoaderOptions& options) {
  return options.is_training && crop_mode(options.augment, options.img_size) == CropMode::kPad;
}

BatchOps::Options ops_options(const LoaderOptions& options) {
  BatchOps::Options ops;
  ops.preprocessing = options.preprocessing;
  ops.channels = options.channels;
  ops.img_size = options.img_size;
  ops.padding = is_padded(options) ? options.augment.crop_padding : 0;
  ops.erase_mode = options.augment.remode;
  ops.has_erasing = options.is_training && options.augment.reprob > 0;
  ops.seed = options.seed;
  ops.device = options.device;
  return ops;
}

}  // namespace

struct Loader::Impl {
  Impl(Split the_split, LoaderOptions the_options)
      : split(std::move(the_split)),
        options((check(split, the_options), std::move(the_options))),
        sampler(sampler_options(split, options)),
        is_whole(is_resident(split, options)),
        ops(ops_options(options)),
        source(is_whole ? make_resident_source(split, options, sampler)
                        : make_streaming_source(split, options, sampler)) {}

  std::vector<SamplePlan> plan_of(const PixelBatch& pixels) const;
  torch::Tensor images_of(const PixelBatch& pixels, const torch::Tensor& plan) const;
  std::vector<int64_t> first_met(const std::vector<int64_t>& broken);
  Batch finish(const PixelBatch& pixels);

  Split split;
  LoaderOptions options;
  Sampler sampler;
  bool is_whole;  // pixels lie as they were stored: crops are made in batches
  BatchOps ops;
  std::unique_ptr<PixelSource> source;
  int64_t step = -1;  // before the first begin
  std::set<int64_t> unreadable;
};

std::vector<SamplePlan> Loader::Impl::plan_of(const PixelBatch& pixels) const {
  const AugmentOptions& augment = options.augment;
  const int64_t padding = is_padded(options) ? augment.crop_padding : 0;
  std::vector<SamplePlan> plan(pixels.samples.size());
  for (size_t i = 0; i < plan.size(); ++i) {
    const int64_t image = pixels.images[i];
    plan[i].row = pixels.rows[i];
    plan[i].label = image < 0 ? -1 : split.labels[static_cast<size_t>(image)];
    if (!options.is_training) continue;
    const auto rng = [&](Stream use) {
      return sample_stream(options.seed, use, sampler.epoch(), pixels.samples[i]);
    };
    if (is_whole) plan[i].crop = draw_crop(padding, augment.hflip, rng(Stream::kCrop));
    plan[i].erasing = draw_erasing(augment, options.img_size, rng(Stream::kErasing));
  }
  return plan;
}

torch::Tensor Loader::Impl::images_of(const PixelBatch& pixels, const torch::Tensor& plan) const {
  if (!is_whole) return ops.normalise(pixels.pixels.to(options.device, /*non_blocking=*/true));
  return ops.crop(pixels.pixels, plan);
}

std::vector<int64_t> Loader::Impl::first_met(const std::vector<int64_t>& broken) {
  std::vector<int64_t> met;
  for (const int64_t image : broken) {
    if (unreadable.insert(image).second) met.push_back(image);
  }
  return met;
}

Batch Loader::Impl::finish(const PixelBatch& pixels) {
  const torch::NoGradGuard no_grad;
  Batch batch;
  batch.unreadable = first_met(pixels.broken);
  const auto classes = std::max(options.classes, static_cast<int64_t>(split.classes.size()));
  if (pixels.samples.empty()) {  // evaluation: fewer images than processes
    const torch::TensorOptions on_device(options.device);
    batch.images =
        torch::empty({0, options.channels, options.img_size, options.img_size}, on_device);
    batch.labels = torch::empty({0}, on_device.dtype(torch::kInt64));
    return batch;
  }
  const bool has_erasing = options.is_training && options.augment.reprob > 0;
  const auto plan =
      pack_plan(plan_of(pixels), has_erasing ? options.augment.recount : 0, options.device);
  batch.images = images_of(pixels, plan);
  batch.labels = plan.select(1, kLabel).contiguous();
  if (!options.is_training) return batch;
  if (has_erasing) ops.erase(batch.images, plan);
  batch.targets = smoothed_targets(batch.labels, classes, options.augment.smoothing);
  const Mix mix =
      draw_mix(options.augment, options.img_size,
               stream(options.seed, Stream::kMix,
                      {static_cast<uint64_t>(sampler.epoch()), static_cast<uint64_t>(step)}));
  mix_neighbours(mix, batch.images, batch.targets);
  return batch;
}

Loader::Loader(Split split, LoaderOptions options)
    : impl_(std::make_unique<Impl>(std::move(split), std::move(options))) {}
Loader::~Loader() = default;
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;

const Split& Loader::split() const { return impl_->split; }
int64_t Loader::steps() const { return impl_->sampler.steps(); }
int64_t Loader::batch_size(int64_t step) const { return impl_->sampler.batch_size(step); }

void Loader::begin(int64_t epoch, int64_t step) {
  if (epoch < 0 || step < 0 || step > steps()) {
    throw Error(
        ErrorKind::kInternal,
        fmt::format("loader: step {} of epoch {}; an epoch has {} steps", step, epoch, steps()));
  }
  const c10::OptionalDeviceGuard guard(impl_->options.device);
  impl_->sampler.begin(epoch);
  impl_->step = step;
  impl_->source->begin(step);
}

Batch Loader::next() {
  if (impl_->step < 0 || impl_->step >= steps()) {
    throw Error(ErrorKind::kInternal, "loader: asked for a batch outside an epoch");
  }
  const c10::OptionalDeviceGuard guard(impl_->options.device);
  const PixelBatch pixels = impl_->source->next();
  Batch batch = impl_->finish(pixels);
  ++impl_->step;
  return batch;
}

std::vector<int64_t> Loader::unreadable() const {
  return {impl_->unreadable.begin(), impl_->unreadable.end()};
}

void Loader::set_unreadable(const std::vector<int64_t>& images) {
  impl_->unreadable = {images.begin(), images.end()};
}

}  // namespace adjoin::data
