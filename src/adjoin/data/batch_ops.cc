#include "adjoin/data/batch_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "adjoin/core/error.h"
#include "adjoin/data/batch_loops.h"
#include "adjoin/data/sampler.h"

namespace adjoin::data {
namespace {

/// Stretches of noise begin at one of so many places. The values are drawn once and kept on the
/// device: fresh noise for every image would cost more than all other operations together.
constexpr int64_t kNoisePlaces = 1 << 18;

/// The box of cutmix: a share 1 - lambda of the image around a point in it, what is outside cut
/// off.
Rectangle draw_box(double lambda, int64_t img_size, Rng& rng) {
  const auto side = static_cast<int64_t>(static_cast<double>(img_size) * std::sqrt(1 - lambda));
  const auto draw_side = [&](int64_t& begin, int64_t& length) {
    const int64_t middle = rng.below(img_size);
    begin = std::max<int64_t>(middle - side / 2, 0);
    length = std::min(middle + side / 2, img_size) - begin;
  };
  Rectangle box;
  draw_side(box.top, box.height);
  draw_side(box.left, box.width);
  return box;
}

std::vector<float> normalisation_table(const Preprocessing& preprocessing) {
  std::vector<float> table;
  for (size_t c = 0; c < preprocessing.mean.size(); ++c) {
    const auto mean = static_cast<float>(preprocessing.mean[c]);
    const auto std = static_cast<float>(preprocessing.std[c]);
    for (int v = 0; v < 256; ++v) table.push_back((static_cast<float>(v) / 255 - mean) / std);
  }
  return table;
}

torch::Tensor per_channel(const std::vector<double>& values, torch::Device device) {
  return torch::tensor(values, torch::kFloat64)
      .mul(255)
      .to(torch::kFloat32)
      .view({-1, 1, 1})
      .to(device);
}

torch::Tensor make_noise(uint64_t seed, int64_t stretch, torch::Device device) {
  const auto noise = torch::empty({kNoisePlaces + stretch}, torch::kFloat32);
  Rng rng = stream(seed, Stream::kNoise, {});
  auto* values = noise.data_ptr<float>();
  for (int64_t i = 0; i < noise.numel(); ++i) values[i] = static_cast<float>(rng.normal());
  return noise.to(device);
}

PlanRows rows_of(const torch::Tensor& plan) {
  return {plan.data_ptr<int64_t>(), plan.size(0), plan.size(1)};
}

torch::Tensor column(const torch::Tensor& plan, int64_t index) {
  return plan.narrow(1, index, 1);  // (b, 1)
}

/// (b, size), true from begin to begin + length - 1
torch::Tensor is_between(const torch::Tensor& begin, const torch::Tensor& length, int64_t size) {
  const auto place = torch::arange(size, begin.options());
  return (place >= begin).logical_and_(place < begin + length);
}

}  // namespace

Crop draw_crop(int64_t padding, double hflip, Rng rng) {
  Crop crop;
  crop.top = rng.below(2 * padding + 1);
  crop.left = rng.below(2 * padding + 1);
  crop.is_flipped = rng.chance(hflip);
  return crop;
}

Erasing draw_erasing(const AugmentOptions& options, int64_t img_size, Rng rng) {
  constexpr double kLeastArea = 0.02;
  constexpr double kMostArea = 1.0 / 3;
  constexpr int kTries = 10;
  const double most_log_aspect = -std::log(0.3);
  Erasing erasing;
  if (!rng.chance(options.reprob)) return erasing;
  erasing.noise = rng.below(kNoisePlaces);
  const int64_t count = 1 + rng.below(options.recount);
  const auto size = static_cast<double>(img_size);
  for (int64_t i = 0; i < count; ++i) {
    for (int attempt = 0; attempt < kTries; ++attempt) {
      const double area =
          rng.uniform(kLeastArea, kMostArea) * size * size / static_cast<double>(count);
      const double aspect = std::exp(rng.uniform(-most_log_aspect, most_log_aspect));
      const auto height = static_cast<int64_t>(std::nearbyint(std::sqrt(area * aspect)));
      const auto width = static_cast<int64_t>(std::nearbyint(std::sqrt(area / aspect)));
      if (height >= img_size || width >= img_size) continue;
      const int64_t top = rng.below(img_size - height + 1);
      erasing.rectangles.push_back({top, rng.below(img_size - width + 1), height, width});
      break;
    }
  }
  return erasing;
}

Mix draw_mix(const AugmentOptions& options, int64_t img_size, Rng rng) {
  Mix mix;
  if (options.mixup <= 0 && options.cutmix <= 0) return mix;
  if (!rng.chance(options.mixup_prob)) return mix;
  const bool has_both = options.mixup > 0 && options.cutmix > 0;
  mix.is_cutmix = has_both ? rng.chance(options.mixup_switch_prob) : options.cutmix > 0;
  mix.lambda = rng.beta(mix.is_cutmix ? options.cutmix : options.mixup);
  if (mix.is_cutmix) {
    mix.box = draw_box(mix.lambda, img_size, rng);
    mix.lambda = 1 - static_cast<double>(mix.box.area()) / static_cast<double>(img_size * img_size);
  }
  return mix;
}

torch::Tensor pack_plan(const std::vector<SamplePlan>& plan, int64_t rectangles,
                        torch::Device device) {
  const int64_t columns = kRectangles + 4 * rectangles;
  // Pinned memory: the copy neither waits for the device nor lets it wait.
  const auto options = torch::TensorOptions(torch::kInt64).pinned_memory(device.is_cuda());
  const auto packed = torch::empty({static_cast<int64_t>(plan.size()), columns}, options);
  auto* row = packed.data_ptr<int64_t>();
  for (const SamplePlan& sample : plan) {
    std::fill_n(row, columns, 0);
    row[kRow] = sample.row;
    row[kLabel] = sample.label;
    row[kTop] = sample.crop.top;
    row[kLeft] = sample.crop.left;
    row[kIsFlipped] = sample.crop.is_flipped ? 1 : 0;
    row[kNoise] = sample.erasing.noise;
    if (static_cast<int64_t>(sample.erasing.rectangles.size()) > rectangles) {
      throw Error(ErrorKind::kInternal, "plan: more rectangles than columns for them");
    }
    int64_t* place = row + kRectangles;
    for (const Rectangle& r : sample.erasing.rectangles) {
      for (const int64_t value : {r.top, r.left, r.height, r.width}) *place++ = value;
    }
    row += columns;
  }
  return packed.to(device, /*non_blocking=*/true);
}

BatchOps::BatchOps(const Options& options)
    : options_(options), table_(normalisation_table(options.preprocessing)) {
  const auto channels = static_cast<size_t>(options.channels);
  const Preprocessing& preprocessing = options.preprocessing;
  if (preprocessing.mean.size() != channels || preprocessing.std.size() != channels) {
    throw Error(ErrorKind::kConfig,
                fmt::format("preprocessing: {} mean and {} std values for images of {} channels",
                            preprocessing.mean.size(), preprocessing.std.size(), channels));
  }
  mean_ = per_channel(preprocessing.mean, options.device);
  std_ = per_channel(preprocessing.std, options.device);
  if (options.has_erasing) {
    const Geometry geometry{options.channels, options.img_size};
    noise_ = make_noise(options.seed, geometry.pixels(), options.device);
  }
}

torch::Tensor BatchOps::normalise(const torch::Tensor& pixels) const {
  if (!pixels.is_cpu()) return pixels.to(torch::kFloat32).sub_(mean_).div_(std_);
  const auto images = torch::empty(pixels.sizes(), torch::kFloat32);
  normalise_loop(pixels.data_ptr<uint8_t>(), pixels.size(0), {options_.channels, pixels.size(2)},
                 table_.data(), images.data_ptr<float>());
  return images;
}

torch::Tensor BatchOps::crop(const torch::Tensor& pixels, const torch::Tensor& plan) const {
  if (!pixels.is_cpu()) return normalise(crop_by_tensors(pixels, plan));
  const auto images =
      torch::empty({plan.size(0), pixels.size(1), pixels.size(2), pixels.size(3)}, torch::kFloat32);
  crop_loop(pixels.data_ptr<uint8_t>(), rows_of(plan), {options_.channels, options_.img_size},
            options_.padding, table_.data(), images.data_ptr<float>());
  return images;
}

torch::Tensor BatchOps::crop_by_tensors(const torch::Tensor& pixels,
                                        const torch::Tensor& plan) const {
  const int64_t side = options_.img_size;
  const auto place = torch::arange(side, plan.options());
  const auto rows = place + column(plan, kTop) - options_.padding;  // (b, H)
  const auto in_crop =
      torch::where(column(plan, kIsFlipped).to(torch::kBool), side - 1 - place, place);
  const auto columns = in_crop + column(plan, kLeft) - options_.padding;  // (b, W)
  const auto channel = torch::arange(options_.channels, plan.options());
  const auto across = [](const torch::Tensor& t) { return t.unsqueeze(1).unsqueeze(-1); };
  const auto down = [](const torch::Tensor& t) { return t.unsqueeze(1).unsqueeze(1); };
  auto images = pixels.index({down(column(plan, kRow)), channel.view({1, -1, 1, 1}),
                              across(rows.clamp(0, side - 1)), down(columns.clamp(0, side - 1))});
  if (options_.padding == 0) return images;
  const auto is_inside = [&](const torch::Tensor& t) { return (t >= 0).logical_and_(t < side); };
  return images.mul_(across(is_inside(rows)).logical_and(down(is_inside(columns))));
}

void BatchOps::erase(torch::Tensor& images, const torch::Tensor& plan) const {
  if (!images.is_cpu()) return erase_by_tensors(images, plan);
  erase_loop(images.data_ptr<float>(), rows_of(plan), {options_.channels, options_.img_size},
             options_.erase_mode, noise_.data_ptr<float>());
}

void BatchOps::erase_by_tensors(torch::Tensor& images, const torch::Tensor& plan) const {
  const int64_t side = options_.img_size;
  const int64_t channels = options_.channels;
  const int64_t rectangles = (plan.size(1) - kRectangles) / 4;
  // Row i of the view is the stretch of `length` values that begins at i.
  const auto stretch = [&](int64_t length) {
    return noise_.unfold(0, length, 1).index_select(0, plan.select(1, kNoise));
  };
  torch::Tensor fill = torch::zeros({1}, images.options());
  if (options_.erase_mode == EraseMode::kPixel) {
    fill = stretch(channels * side * side).view_as(images);
  } else if (options_.erase_mode == EraseMode::kRand) {
    fill = stretch(rectangles * channels).view({-1, rectangles, channels, 1, 1});
  }
  for (int64_t r = 0; r < rectangles; ++r) {
    const auto part = [&](int64_t index) { return column(plan, kRectangles + 4 * r + index); };
    const auto is_erased =
        is_between(part(0), part(2), side)
            .view({-1, 1, side, 1})
            .logical_and(is_between(part(1), part(3), side).view({-1, 1, 1, side}));
    const auto& values = options_.erase_mode == EraseMode::kRand ? fill.select(1, r) : fill;
    images = torch::where(is_erased, values, images);
  }
}

torch::Tensor smoothed_targets(const torch::Tensor& labels, int64_t classes, double smoothing) {
  const double off = smoothing / static_cast<double>(classes);
  return torch::full({labels.size(0), classes}, off, labels.options().dtype(torch::kFloat32))
      .scatter_(1, labels.unsqueeze(1), 1 - smoothing + off);
}

void mix_neighbours(const Mix& mix, torch::Tensor& images, torch::Tensor& targets) {
  if (mix.lambda == 1) return;
  const int64_t pairs = images.size(0) / 2;
  if (pairs == 0) return;
  const auto sides = [&](const torch::Tensor& batch) {
    const auto paired = batch.narrow(0, 0, 2 * pairs).unflatten(0, {pairs, 2});
    return std::pair(paired.select(1, 0), paired.select(1, 1));
  };
  const auto blend = [&](const torch::Tensor& batch) {
    auto [first, second] = sides(batch);
    const auto moved = (second - first).mul_(1 - mix.lambda);
    first.add_(moved);
    second.sub_(moved);
  };
  blend(targets);
  if (!mix.is_cutmix) return blend(images);
  const auto box =
      images.narrow(2, mix.box.top, mix.box.height).narrow(3, mix.box.left, mix.box.width);
  auto [first, second] = sides(box);
  const auto kept = first.clone();
  first.copy_(second);
  second.copy_(kept);
}

}  // namespace adjoin::data
