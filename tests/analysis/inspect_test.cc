#include "adjoin/analysis/inspect.h"

#include <cmath>

#include "adjoin/analysis/compare.h"
#include "adjoin/analysis/depth_curves.h"
#include "adjoin/analysis/emd.h"
#include "adjoin/analysis/token_rank.h"
#include "adjoin/models/forward.h"
#include "adjoin/models/init.h"
#include "adjoin/models/slice.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/derive.h"
#include "adjoin/spec/overrides.h"
#include "support/expect_error.h"
#include "support/random_weights.h"
#include "support/seeded_test.h"

namespace adjoin::analysis {
namespace {

class InspectTest : public SeededTest {
 protected:
  static Sample sample_of(const ModelSpec& spec, int64_t images = 3) {
    return {randn64({images, spec.in_chans, spec.img_size, spec.img_size}),
            torch::arange(images) % spec.num_classes};
  }

  static Inspection seen(const ModelSpec& spec, const Weights& weights,
                         const InspectOptions& options = {}) {
    return inspect({spec, weights}, sample_of(spec), options);
  }
};

class InspectFamilyTest : public InspectTest, public testing::WithParamInterface<const char*> {};

TEST_P(InspectFamilyTest, SaysSomethingFiniteOfEveryLayer) {
  const ModelSpec spec = catalog_spec(GetParam());
  const Inspection found = seen(spec, random_weights(spec, torch::kFloat64));
  size_t blocks = 0;
  for (const LayerReport& layer : found.layers) {
    EXPECT_GT(layer.residual_frobenius, 0) << layer.name;
    EXPECT_LE(layer.residual_frobenius, 1 + 1e-12) << layer.name;  // the mean is the nearest
    EXPECT_LE(std::abs(layer.token_cosine), 1) << layer.name;
    EXPECT_GE(layer.effective_rank, 1 - 1e-9) << layer.name;
    EXPECT_LE(layer.effective_rank, static_cast<double>(std::min(layer.tokens, layer.width)) + 1e-9)
        << layer.name;
    EXPECT_GT(layer.gradient_norm.value(), 0) << layer.name;
    if (!layer.block) continue;
    ++blocks;
    EXPECT_GT(layer.block->weight_gradient_norm.value(), 0) << layer.name;
    EXPECT_TRUE(layer.block->first_part.has_value()) << layer.name;
    for (const double entropy : layer.block->attention_entropy) {
      EXPECT_GE(entropy, 0);
      EXPECT_LE(entropy, std::log(static_cast<double>(layer.tokens)) + 1e-9);
    }
  }
  EXPECT_EQ(blocks, placed_blocks(spec).size());
  EXPECT_EQ(found.layers.front().name, "tokens");
  EXPECT_EQ(found.layers.back().name, "norm");
  EXPECT_NEAR(found.layers[0].residual_frobenius_of_input, 1, 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Models, InspectFamilyTest,
                         testing::Values("vit_mini_28", "vit_mini_32", "t2t_mini_28",
                                         "swin_mini_28", "swin_mini_32"),
                         [](const auto& p) { return std::string(p.param); });

TEST_F(InspectTest, GradientsAreThoseOfTheMeanLoss) {
  const ModelSpec spec = catalog_spec("vit_mini_28");
  Weights weights = random_weights(spec, torch::kFloat64);
  const Sample sample = sample_of(spec);
  const Inspection found = inspect({spec, weights}, sample, {});
  models::require_gradients(spec, weights);
  const auto tokens = models::embed(spec, weights, sample.images);
  tokens.retain_grad();
  const auto loss = torch::nn::functional::cross_entropy(
      models::answer(spec, weights, tokens).logits(), sample.labels);
  loss.backward();
  EXPECT_NEAR(found.loss.value(), loss.item<double>(), 1e-12);
  EXPECT_NEAR(found.layers[0].gradient_norm.value(), tokens.grad().norm().item<double>(), 1e-12);
  double squares = 0;
  for (const auto& [name, tensor] : weights) {
    if (name.starts_with("blocks.1.")) squares += tensor.grad().square().sum().item<double>();
  }
  EXPECT_NEAR(found.layers[2].block->weight_gradient_norm.value(), std::sqrt(squares), 1e-10);
}

TEST_F(InspectTest, WithoutLabelsThereAreNoGradients) {
  const ModelSpec spec = catalog_spec("vit_mini_28");
  const Weights weights = random_weights(spec, torch::kFloat64);
  const Inspection found = inspect({spec, weights}, {sample_of(spec).images, {}}, {});
  EXPECT_FALSE(found.loss.has_value());
  EXPECT_FALSE(found.layers[1].gradient_norm.has_value());
}

TEST_F(InspectTest, TheFirstPartExplainsAllWhereTheRestDoesNothing) {
  const ModelSpec spec = catalog_spec("vit_mini_28");
  Weights weights = random_weights(spec, torch::kFloat64);
  InspectOptions options;
  options.alpha = 4;
  EXPECT_LT(seen(spec, weights, options).layers[1].block->first_part->explained, 0.9);
  weights.at("blocks.0.attn.proj.weight").slice(1, 64 / 4).zero_();
  weights.at("blocks.0.mlp.fc2.weight").slice(1, 128 / 4).zero_();
  const FirstPart part = seen(spec, weights, options).layers[1].block->first_part.value();
  EXPECT_EQ(part.alpha, 4);
  EXPECT_NEAR(part.explained, 1, 1e-12);
  EXPECT_NEAR(part.cosine, 1, 1e-12);
}

TEST_F(InspectTest, NamesTheLayerWhoseActivationsAreNotFinite) {
  const ModelSpec spec = catalog_spec("vit_mini_28");
  Weights weights = random_weights(spec, torch::kFloat64);
  weights.at("blocks.2.mlp.fc1.bias").fill_(NAN);
  expect_error(ErrorKind::kNumeric, {"blocks.2", "not finite"}, [&] { seen(spec, weights); });
}

TEST_F(InspectTest, RefusesALayerOfOneToken) {
  const ModelSpec spec =
      with_overrides(catalog_spec("swin_mini_32"), {{"img_size", "4"}, {"window", "1"}});
  const Weights weights = random_weights(spec, torch::kFloat64);
  expect_error(ErrorKind::kConfig, {"downsample", "one token"}, [&] { seen(spec, weights); });
}

TEST_F(InspectTest, BeingBriefLeavesOutLayersOfOneToken) {
  const ModelSpec spec =
      with_overrides(catalog_spec("swin_mini_32"), {{"img_size", "4"}, {"window", "1"}});
  InspectOptions options;
  options.is_brief = true;
  const auto layers = seen(spec, random_weights(spec, torch::kFloat64), options).layers;
  ASSERT_EQ(layers.size(), 3U);  // tokens and the blocks of the first stage
  EXPECT_EQ(layers[2].name, "layers.0.blocks.1");
}

TEST_F(InspectTest, ABlockThatCannotBeDividedHasNoFirstPart) {
  const ModelSpec spec =
      with_overrides(catalog_spec("vit_mini_28"),
                     {{"depth", "2"}, {"head_dim", "8"}, {"heads", "6,8"}, {"mlp_ratio", "3"}});
  InspectOptions options;
  options.alpha = 3;
  const auto layers = seen(spec, random_weights(spec, torch::kFloat64), options).layers;
  EXPECT_EQ(layers[1].block->first_part->alpha, 3);
  EXPECT_FALSE(layers[2].block->first_part.has_value());
}

// ---- two networks

TEST_F(InspectTest, ANetworkIsAtNoDistanceFromItself) {
  if (!has_emd()) GTEST_SKIP() << "built without LEMON";
  const ModelSpec spec = catalog_spec("vit_mini_28");
  const Weights weights = random_weights(spec, torch::kFloat64);
  const Sample sample = sample_of(spec);
  const Inspection found = inspect({spec, weights}, sample, {});
  const Comparison same = compare(found, found, class_distances({spec, weights}), {2});
  EXPECT_EQ(same.layers.size(), found.layers.size());
  for (const CloudDistance& layer : same.layers) EXPECT_LT(layer.token_emd, 1e-9);
  EXPECT_EQ(same.agreement, 100);
  EXPECT_LT(same.class_emd, 1e-12);
  EXPECT_NEAR(same.kl, 0, 1e-12);
}

TEST_F(InspectTest, CloudsThatWereShiftedAreAsFarApartAsTheShift) {
  if (!has_emd()) GTEST_SKIP() << "built without LEMON";
  const ModelSpec spec = catalog_spec("vit_mini_28");
  const Weights weights = random_weights(spec, torch::kFloat64);
  Inspection found = inspect({spec, weights}, sample_of(spec), {});
  Inspection moved = found;
  auto shift = torch::zeros({64}, torch::kFloat64);
  shift[5] = 3;
  moved.outputs[1] = found.outputs[1].flip(1) + shift;  // tokens in another order, all moved
  const Comparison two = compare(found, moved, class_distances({spec, weights}), {1});
  EXPECT_NEAR(two.layers[1].token_emd, 3, 1e-9);
  EXPECT_NEAR(two.layers[2].token_emd, 0, 1e-9);
}

TEST_F(InspectTest, BlocksAreComparedWithThoseTheyCameFrom) {
  if (!has_emd()) GTEST_SKIP() << "built without LEMON";
  const ModelSpec large = catalog_spec("vit_mini_28");
  Choice choice = keep_everything(large);
  choice.blocks[1].keep = false;
  const Derived part = derive(large, choice, Geometry::kKept);
  const Weights weights = random_weights(large, torch::kFloat64);
  const Comparison two =
      compare(seen(large, weights), seen(part.spec, models::copies(part, weights)),
              class_distances({large, weights}), {1});
  ASSERT_EQ(two.layers.size(), 5U);  // tokens, three blocks, norm
  EXPECT_EQ(two.layers[2].first, "blocks.2");
  EXPECT_EQ(two.layers[2].second, "blocks.1");
}

TEST_F(InspectTest, NetworksOfOtherWidthAreComparedByTheirAnswersAlone) {
  if (!has_emd()) GTEST_SKIP() << "built without LEMON";
  const ModelSpec large = catalog_spec("vit_mini_28");
  const Derived part = derive(large, choice_from_alphas(large, {2}), Geometry::kNarrow);
  const Weights weights = random_weights(large, torch::kFloat64);
  const Weights small = models::copies(part, weights);
  const Comparison two =
      compare(seen(large, weights), seen(part.spec, small), class_distances({large, weights}), {1});
  EXPECT_TRUE(two.layers.empty());
  ASSERT_EQ(two.notes.size(), 1U);
  EXPECT_GT(two.total_variation, 0);
}

TEST_F(InspectTest, ClassesThatCannotBeComparedAreRefused) {
  const ModelSpec ten = catalog_spec("vit_mini_28");
  const ModelSpec five = with_overrides(ten, {{"num_classes", "5"}});
  const Weights weights = random_weights(ten, torch::kFloat64);
  const Inspection first = seen(ten, weights);
  const Inspection second = seen(five, random_weights(five, torch::kFloat64));
  expect_error(ErrorKind::kConfig, {"10", "5", "classes"}, [&] {
    compare(first, second, class_distances({ten, weights}), {1});
  });
}

// ---- depth

TEST_F(InspectTest, SkipsKeepRankAndShortcutsKeepMore) {
  const ModelSpec spec =
      with_overrides(catalog_spec("vit_mini_28"), {{"depth", "12"}, {"shortcut", "circulant"}});
  const auto curves = depth_curves({spec, models::init(spec, 0)}, torch::randn({4, 1, 28, 28}));
  std::map<std::string, double> last;
  for (const DepthCurve& curve : curves) {
    EXPECT_EQ(curve.residual_frobenius.size(), 13U) << curve.name;
    last[curve.name] = curve.diversity.back();
  }
  EXPECT_LT(last.at("attention"), 1e-12);
  EXPECT_LT(last.at("attention + MLP"), 1e-12);
  EXPECT_LT(last.at("attention + norm"), 1e-3 * last.at("attention + skip"));
  EXPECT_LE(last.at("attention + skip"), last.at("attention + skip + shortcut"));
}

TEST_F(InspectTest, PartsLeftOutAreLeftOut) {
  const ModelSpec spec = with_overrides(catalog_spec("vit_mini_28"), {{"depth", "1"}});
  const Weights weights = random_weights(spec, torch::kFloat64);
  const auto images = sample_of(spec).images;
  nn::Context context;
  std::map<std::string, torch::Tensor> found;
  context.tap = [&](std::string_view name, const torch::Tensor& x) {
    found[std::string(name)] = x;
  };
  const auto tokens = models::embed(spec, weights, images);
  const auto run = [&] {
    models::answer(spec, weights, tokens, context);
    return found.at("blocks.0");
  };
  context.has_mlps = false;
  const auto with_skip = run();
  context.has_skips = false;
  const auto without = run();
  EXPECT_LT((with_skip - without - tokens).abs().max().item<double>(), 1e-12);
}

}  // namespace
}  // namespace adjoin::analysis
