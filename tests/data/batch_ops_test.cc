#include "adjoin/data/batch_ops.h"

#include <cmath>

#include "adjoin/data/sampler.h"
#include "support/expect_error.h"
#include "support/seeded_test.h"

namespace adjoin::data {
namespace {

constexpr int64_t kSide = 16;

BatchOps::Options ops_options(EraseMode mode = EraseMode::kPixel) {
  BatchOps::Options options;
  options.preprocessing = {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
  options.img_size = kSide;
  options.padding = 4;
  options.erase_mode = mode;
  options.has_erasing = true;
  return options;
}

AugmentOptions erasing(double chance, int64_t count) {
  AugmentOptions options;
  options.reprob = chance;
  options.recount = count;
  return options;
}

Rng rng(uint64_t key) { return Rng(stream_key(1, {key})); }

torch::Tensor random_pixels(int64_t count) {
  return torch::randint(256, {count, 3, kSide, kSide}, torch::kUInt8);
}

std::vector<SamplePlan> random_plan(int64_t count, int64_t rows, int64_t rectangles) {
  std::vector<SamplePlan> plan;
  for (int64_t i = 0; i < count; ++i) {
    const auto key = static_cast<uint64_t>(i);
    plan.push_back({(i * 7) % rows, i % 5, draw_crop(4, 0.5, rng(key)),
                    draw_erasing(erasing(0.7, rectangles), kSide, rng(key + 1000))});
  }
  return plan;
}

class BatchOpsTest : public SeededTest {};

TEST_F(BatchOpsTest, CropsThePaddedImageAndFlipsIt) {
  BatchOps::Options options;
  options.preprocessing = {{0.0}, {1.0 / 255}};  // values come out as the pixels are
  options.channels = 1;
  options.img_size = 3;
  options.padding = 1;
  const BatchOps ops(options);
  const auto pixels = torch::arange(1, 10, torch::kUInt8).view({1, 1, 3, 3});
  const auto crop = [&](Crop where) {
    const auto plan = pack_plan({{0, 0, where, {}}}, 0, torch::kCPU);
    return ops.crop(pixels, plan).flatten();
  };
  const auto same = [](const torch::Tensor& got, const std::vector<double>& wanted) {
    EXPECT_TRUE(torch::allclose(got, torch::tensor(wanted, torch::kFloat32))) << got;
  };
  same(crop({1, 1, false}), {1, 2, 3, 4, 5, 6, 7, 8, 9});
  same(crop({1, 1, true}), {3, 2, 1, 6, 5, 4, 9, 8, 7});
  same(crop({0, 0, false}), {0, 0, 0, 0, 1, 2, 0, 4, 5});
  same(crop({2, 2, true}), {0, 6, 5, 0, 9, 8, 0, 0, 0});
}

TEST_F(BatchOpsTest, CropIsTheSameByLoopsAndByTensors) {
  const BatchOps ops(ops_options());
  const auto pixels = random_pixels(11);
  const auto plan = pack_plan(random_plan(40, 11, 1), 1, torch::kCPU);
  const auto by_loops = ops.crop(pixels, plan);
  const auto by_tensors = ops.normalise(ops.crop_by_tensors(pixels, plan));
  EXPECT_TRUE(torch::equal(by_loops, by_tensors));
}

TEST_F(BatchOpsTest, EraseIsTheSameByLoopsAndByTensors) {
  for (const EraseMode mode : {EraseMode::kPixel, EraseMode::kRand, EraseMode::kConst}) {
    for (const int64_t rectangles : {1, 3}) {
      const BatchOps ops(ops_options(mode));
      const auto plan = pack_plan(random_plan(40, 1, rectangles), rectangles, torch::kCPU);
      const auto images = ops.normalise(random_pixels(40));
      auto by_loops = images.clone();
      auto by_tensors = images.clone();
      ops.erase(by_loops, plan);
      ops.erase_by_tensors(by_tensors, plan);
      EXPECT_TRUE(torch::equal(by_loops, by_tensors)) << static_cast<int>(mode);
      EXPECT_FALSE(torch::equal(by_loops, images));
    }
  }
}

TEST_F(BatchOpsTest, ErasesTheRectanglesAndNothingElse) {
  const std::vector<SamplePlan> plan = {{0, 0, {}, {{{2, 3, 5, 7}}, 123}}, {0, 0, {}, {}}};
  for (const EraseMode mode : {EraseMode::kPixel, EraseMode::kRand, EraseMode::kConst}) {
    const BatchOps ops(ops_options(mode));
    auto images = torch::full({2, 3, kSide, kSide}, 50.0F);
    ops.erase(images, pack_plan(plan, 1, torch::kCPU));
    const auto box = images[0].slice(1, 2, 7).slice(2, 3, 10);
    EXPECT_LT(box.abs().max().item<float>(), 10);
    EXPECT_EQ((images == 50).sum().item<int64_t>(), 3 * (2 * kSide * kSide - 35));
    const double spread = box.flatten(1).std(1).max().item<double>();
    EXPECT_EQ(spread > 0.5, mode == EraseMode::kPixel);
    EXPECT_EQ(box.flatten(1).abs().min().item<float>() == 0, mode == EraseMode::kConst);
  }
}

TEST_F(BatchOpsTest, NoiseIsNormalAndItsOwnForEveryImage) {
  const BatchOps ops(ops_options());
  std::vector<SamplePlan> plan(64);
  for (size_t i = 0; i < plan.size(); ++i) {
    plan[i].erasing = draw_erasing(erasing(1, 1), kSide, rng(i));
    plan[i].erasing.rectangles = {{0, 0, kSide, kSide}};
  }
  auto images = torch::zeros({64, 3, kSide, kSide});
  ops.erase(images, pack_plan(plan, 1, torch::kCPU));
  EXPECT_NEAR(images.mean().item<double>(), 0, 0.03);
  EXPECT_NEAR(images.var().item<double>(), 1, 0.04);
  EXPECT_FALSE(torch::equal(images[0], images[1]));
}

TEST_F(BatchOpsTest, ErasedAreaIsWithinItsBoundsAndTheImage) {
  int erased = 0;
  double least = 1, most = 0;
  for (uint64_t i = 0; i < 4000; ++i) {
    const Erasing drawn = draw_erasing(erasing(0.25, 1), 224, rng(i));
    if (drawn.rectangles.empty()) continue;
    ASSERT_EQ(drawn.rectangles.size(), 1U);
    ++erased;
    const Rectangle& r = drawn.rectangles[0];
    const double area = static_cast<double>(r.area()) / (224.0 * 224);
    least = std::min(least, area);
    most = std::max(most, area);
    EXPECT_TRUE(r.top >= 0 && r.left >= 0 && r.top + r.height <= 224 && r.left + r.width <= 224);
    const double aspect = static_cast<double>(r.height) / static_cast<double>(r.width);
    EXPECT_TRUE(aspect > 0.28 && aspect < 3.6) << aspect;
  }
  EXPECT_NEAR(erased, 1000, 140);  // 5 sigma
  EXPECT_NEAR(least, 0.02, 0.005);
  EXPECT_NEAR(most, 1.0 / 3, 0.01);
}

TEST_F(BatchOpsTest, ErasesUpToRecountSmallerRectangles) {
  std::array<int, 4> counts{};
  for (uint64_t i = 0; i < 1000; ++i) {
    const auto drawn = draw_erasing(erasing(1, 3), 64, rng(i));
    ++counts.at(drawn.rectangles.size());
    int64_t area = 0;
    for (const Rectangle& r : drawn.rectangles) area += r.area();
    EXPECT_LT(area, 64 * 64 * 0.36);
  }
  EXPECT_EQ(counts[0], 0);
  for (const size_t i : {1U, 2U, 3U}) EXPECT_NEAR(counts[i], 333, 75);
}

TEST_F(BatchOpsTest, CutmixLambdaIsTheAreaOutsideTheBox) {
  AugmentOptions options;
  options.cutmix = 1;
  double sum = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    const Mix mix = draw_mix(options, kSide, rng(i));
    ASSERT_TRUE(mix.is_cutmix);
    const auto images =
        torch::arange(2, torch::kFloat32).view({2, 1, 1, 1}).expand({2, 3, kSide, kSide}).clone();
    auto mixed = images;
    auto targets = torch::eye(2);
    mix_neighbours(mix, mixed, targets);
    const double from_other = mixed[0].mean().item<double>();
    EXPECT_NEAR(mix.lambda, 1 - from_other, 1e-6);
    EXPECT_NEAR(targets[0][0].item<double>(), mix.lambda, 1e-6);
    EXPECT_NEAR(targets[1][0].item<double>(), 1 - mix.lambda, 1e-6);
    EXPECT_NEAR(mixed[1].mean().item<double>(), 1 - from_other, 1e-6);
    sum += mix.lambda;
  }
  EXPECT_GT(sum / 500, 0.5);  // boxes over the border lose area
  EXPECT_LT(sum / 500, 0.75);
}

TEST_F(BatchOpsTest, MixupBlendsNeighboursAndLeavesTheOddOne) {
  auto images = torch::randn({5, 3, kSide, kSide});
  const auto before = images.clone();
  auto targets = smoothed_targets(torch::tensor({0, 1, 2, 3, 0}, torch::kInt64), 4, 0.1);
  const auto plain = targets.clone();
  mix_neighbours({0.3, false, {}}, images, targets);
  for (const int64_t i : {0, 1, 2, 3}) {
    EXPECT_TRUE(torch::allclose(images[i], 0.3 * before[i] + 0.7 * before[i ^ 1], 1e-4, 1e-6));
    EXPECT_TRUE(torch::allclose(targets[i], 0.3 * plain[i] + 0.7 * plain[i ^ 1]));
  }
  EXPECT_TRUE(torch::equal(images[4], before[4]));
  EXPECT_TRUE(torch::equal(targets[4], plain[4]));
  EXPECT_TRUE(torch::allclose(targets.sum(1), torch::ones({5})));
}

TEST_F(BatchOpsTest, SmoothedTargetsSumToOne) {
  const auto targets = smoothed_targets(torch::tensor({2, 0}, torch::kInt64), 4, 0.1);
  EXPECT_TRUE(torch::allclose(
      targets,
      torch::tensor({0.025, 0.025, 0.925, 0.025, 0.925, 0.025, 0.025, 0.025}, torch::kFloat32)
          .view({2, 4})));
}

TEST_F(BatchOpsTest, MixFollowsItsProbabilities) {
  AugmentOptions options;
  options.mixup = 0.8;
  options.cutmix = 1;
  options.mixup_prob = 0.5;
  options.mixup_switch_prob = 0.3;
  int mixed = 0, cut = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    const Mix mix = draw_mix(options, 224, rng(i));
    mixed += mix.lambda < 1 || mix.is_cutmix ? 1 : 0;
    cut += mix.is_cutmix ? 1 : 0;
    EXPECT_TRUE(mix.lambda >= 0 && mix.lambda <= 1);
  }
  EXPECT_NEAR(mixed, 1000, 115);
  EXPECT_NEAR(cut, 300, 80);
  EXPECT_EQ(draw_mix(AugmentOptions{}, 224, rng(0)).lambda, 1);
}

TEST_F(BatchOpsTest, RefusesStatisticsOfOtherChannels) {
  BatchOps::Options options = ops_options();
  options.channels = 1;
  expect_error(ErrorKind::kConfig, {"3 mean", "1 channels"}, [&] { BatchOps ops(options); });
}

}  // namespace
}  // namespace adjoin::data
