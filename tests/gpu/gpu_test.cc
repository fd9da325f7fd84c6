// What a GPU must get right; skipped with a reason where there is none.
#include "adjoin/models/forward.h"
#include "adjoin/models/golden.h"
#include "adjoin/models/init.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/tensor/device.h"
#include "support/seeded_test.h"

namespace adjoin::models {
namespace {

class GpuTest : public SeededTest {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU is visible to this LibTorch";
    prepare_torch(1);
  }
};

class GpuGoldenTest : public GpuTest, public testing::WithParamInterface<const char*> {
 protected:
  double error(torch::ScalarType dtype) {
    const Json golden = read_json_file(std::string(ADJOIN_GOLDEN_DIR) + "/" + GetParam() + ".json");
    const GoldenReport report = verify(golden, torch::kCUDA, dtype);
    return std::max(report.logits_error(), report.stage_error());
  }
};

TEST_P(GpuGoldenTest, AgreesInFloat64) { EXPECT_LT(error(torch::kFloat64), 1e-7); }
TEST_P(GpuGoldenTest, AgreesInFloat32) { EXPECT_LT(error(torch::kFloat32), 1e-5); }
TEST_P(GpuGoldenTest, IsNearInBfloat16) { EXPECT_LT(error(torch::kBFloat16), 0.1); }

INSTANTIATE_TEST_SUITE_P(
    Files, GpuGoldenTest,
    testing::Values("deit_tiny_patch16_224", "swin_tiny_patch4_window7_224", "t2t_vit_14",
                    "vit_small_cfg_img32_patch4_dim64_depth3_heads4",
                    "swin_small_cfg_img32_patch2_window4_dim24_depths2_2_heads2_4"),
    [](const auto& p) { return std::string(p.param); });

class GpuCatalogTest : public GpuTest, public testing::WithParamInterface<std::string> {};

TEST_P(GpuCatalogTest, TrainsInBfloat16WithAFiniteGradientEverywhere) {
  const ModelSpec spec = catalog_spec(GetParam());
  Weights weights = init(spec, 0).to(torch::kCUDA, torch::kFloat32);
  require_gradients(spec, weights);
  const auto images =
      torch::randn({2, spec.in_chans, spec.img_size, spec.img_size}, torch::Device(torch::kCUDA));
  nn::Context context;
  context.is_training = true;
  {
    const Autocast autocast(torch::kCUDA, true);
    forward(spec, weights, images, context).logits().to(torch::kFloat32).square().sum().backward();
  }
  for (const TensorInfo& info : tensors(spec)) {
    if (!info.is_trained) continue;
    const auto grad = weights.at(info.name).grad();
    ASSERT_TRUE(grad.defined()) << info.name;
    EXPECT_TRUE(grad.isfinite().all().item<bool>()) << info.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GpuCatalogTest, testing::ValuesIn(catalog_names()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace adjoin::models
