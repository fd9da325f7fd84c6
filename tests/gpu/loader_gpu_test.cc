// Batches made on a GPU beside those of the CPU; skipped with a reason where there is none.
#include "adjoin/data/loader.h"
#include "data/make_split.h"
#include "support/seeded_test.h"

namespace adjoin::data {
namespace {

class GpuLoaderTest : public SeededTest, public testing::WithParamInterface<CropMode> {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU is visible to this LibTorch";
  }

  static LoaderOptions options(EraseMode mode) {
    LoaderOptions options;
    options.batch_size = 16;
    options.img_size = 20;
    options.preprocessing = {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
    options.augment.train_crop_mode = GetParam();
    options.augment.reprob = 0.5;
    options.augment.remode = mode;
    options.augment.recount = 2;
    options.augment.mixup = 0.8;
    options.augment.cutmix = 1;
    return options;
  }
};

TEST_P(GpuLoaderTest, BatchesAreThoseOfTheCpu) {
  const Split split = make_split(100, 20, {3, 50});
  for (const EraseMode mode : {EraseMode::kPixel, EraseMode::kRand, EraseMode::kConst}) {
    LoaderOptions with = options(mode);
    Loader cpu(split, with);
    with.device = torch::Device(torch::kCUDA, 0);
    Loader gpu(split, with);
    cpu.begin(1);
    gpu.begin(1);
    for (int64_t step = 0; step < cpu.steps(); ++step) {
      const Batch wanted = cpu.next();
      const Batch batch = gpu.next();
      ASSERT_TRUE(batch.images.is_cuda());
      EXPECT_TRUE(torch::allclose(batch.images.cpu(), wanted.images, 1e-5, 1e-5));
      EXPECT_TRUE(torch::allclose(batch.targets.cpu(), wanted.targets));
      EXPECT_TRUE(torch::equal(batch.labels.cpu(), wanted.labels));
      EXPECT_EQ(batch.unreadable, wanted.unreadable);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sources, GpuLoaderTest,
                         testing::Values(CropMode::kPad, CropMode::kRandomResized),
                         [](const auto& p) {
                           return p.param == CropMode::kPad ? "Resident" : "Streaming";
                         });

}  // namespace
}  // namespace adjoin::data
