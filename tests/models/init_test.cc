// Start values follow the init rules of tensors(spec).
#include "adjoin/models/init.h"

#include "adjoin/models/forward.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/overrides.h"
#include "support/seeded_test.h"

namespace adjoin::models {
namespace {

TEST(InitTest, EveryTensorHasTheMomentsOfItsRule) {
  for (const char* name : {"deit_tiny_patch16_224", "t2t_vit_7", "swin_mini_32"}) {
    const ModelSpec spec = catalog_spec(name);
    const Weights weights = init(spec, 3);
    for (const TensorInfo& info : tensors(spec)) {
      const auto values = weights.at(info.name).to(torch::kFloat64);
      const double mean = values.mean().item<double>();
      const double rms = values.square().mean().sqrt().item<double>();
      const double scale = info.init.scale;
      const double noise = 6 * scale / std::sqrt(static_cast<double>(info.numel()));
      switch (info.init.kind) {
        case InitKind::kZeros: EXPECT_EQ(rms, 0) << info.name; break;
        case InitKind::kOnes: EXPECT_TRUE((values == 1).all().item<bool>()) << info.name; break;
        case InitKind::kNormal:
          EXPECT_NEAR(mean, 0, noise) << info.name;
          EXPECT_NEAR(rms, scale, noise) << info.name;
          break;
        case InitKind::kUniform:
          EXPECT_NEAR(rms, scale / std::sqrt(3.0), noise) << info.name;
          EXPECT_LE(values.abs().max().item<double>(), scale) << info.name;
          break;
        case InitKind::kOrthogonal: {
          const auto product = torch::matmul(values, values.t());
          EXPECT_TRUE(torch::allclose(
              product, torch::eye(values.size(0), torch::kFloat64) * scale * scale, 0, 1e-4));
          break;
        }
        case InitKind::kSinusoid:
          EXPECT_NEAR(values[0][1][0].item<double>(), std::sin(1.0), 1e-7);
          EXPECT_NEAR(values[0][2][1].item<double>(), std::cos(2.0), 1e-7);
          break;
      }
    }
  }
}

TEST(InitTest, ATensorDependsOnSeedAndNameAlone) {
  const ModelSpec shallow = catalog_spec("vit_mini_28");
  const ModelSpec deep = with_overrides(shallow, {{"depth", "6"}});
  const Weights a = init(shallow, 5), b = init(deep, 5), c = init(shallow, 6);
  EXPECT_TRUE(torch::equal(a.at("blocks.3.mlp.fc1.weight"), b.at("blocks.3.mlp.fc1.weight")));
  EXPECT_FALSE(torch::equal(a.at("blocks.3.mlp.fc1.weight"), c.at("blocks.3.mlp.fc1.weight")));
  EXPECT_FALSE(torch::equal(a.at("blocks.3.mlp.fc1.weight"), a.at("blocks.2.mlp.fc1.weight")));
}

TEST(InitTest, TrainingDropsAndEvaluationDoesNot) {
  const ModelSpec spec = with_overrides(catalog_spec("t2t_mini_28"), {{"drop_path", "0.3"}});
  const Weights weights = init(spec, 0);
  const auto images = torch::randn({4, 1, 28, 28});
  const auto eval = [&] { return forward(spec, weights, images).logits(); };
  EXPECT_TRUE(torch::equal(eval(), eval()));
  const auto train = [&](uint64_t seed) {
    nn::Context context;
    context.is_training = true;
    context.dropout = 0.1;
    context.rng = at::detail::createCPUGenerator(seed);
    return forward(spec, weights, images, context).logits();
  };
  EXPECT_TRUE(torch::equal(train(1), train(1)));
  EXPECT_FALSE(torch::equal(train(1), train(2)));
  EXPECT_FALSE(torch::equal(train(1), eval()));
}

TEST(InitTest, ADistilledNetworkAnswersWithTheMeanOfItsHeads) {
  const ModelSpec spec = with_overrides(catalog_spec("vit_mini_28"), {{"distilled", "true"}});
  const Output output = forward(spec, init(spec, 0), torch::randn({2, 1, 28, 28}));
  ASSERT_TRUE(output.dist.defined());
  EXPECT_FALSE(torch::equal(output.cls, output.dist));
  EXPECT_TRUE(torch::equal(output.logits(), (output.cls + output.dist) / 2));
}

}  // namespace
}  // namespace adjoin::models
