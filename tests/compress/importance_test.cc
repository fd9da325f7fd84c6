#include "adjoin/compress/importance.h"

#include <gtest/gtest.h>

#include "adjoin/models/forward.h"
#include "adjoin/models/init.h"
#include "adjoin/models/slice.h"
#include "adjoin/spec/catalog.h"
#include "models/laws.h"
#include "support/random_spec.h"
#include "support/random_weights.h"
#include "support/seeded_test.h"

namespace adjoin::compress {
namespace {

using models::forward;

torch::Tensor images64(const ModelSpec& spec, int64_t batch) {
  return models::images_for(spec, batch).to(torch::kFloat64);
}

/// All values of a bag in ascending order.
torch::Tensor sorted_values(const torch::Tensor& tensor) {
  return std::get<0>(tensor.flatten().sort());
}

class ImportanceTest : public SeededTest, public testing::WithParamInterface<int> {};

TEST_P(ImportanceTest, OrderingPermutesValuesAndLeavesTheNetworkAsItWas) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const ModelSpec spec = random_spec(3 * seed + static_cast<uint64_t>(GetParam()));
    SCOPED_TRACE(spec.name);
    const Weights weights = random_weights(spec, torch::kFloat64);
    const auto images = images64(spec, 2);
    const auto labels = torch::randint(spec.num_classes, {2});
    const auto before = forward(spec, weights, images).logits();
    for (const auto& scores : {magnitude(spec, weights), taylor(spec, weights, images, labels)}) {
      const Weights ordered = reordered(spec, weights, scores);
      EXPECT_LT((forward(spec, ordered, images).logits() - before).abs().max().item<double>(),
                1e-11);
      for (const auto& [name, tensor] : weights) {
        EXPECT_TRUE(torch::equal(sorted_values(tensor), sorted_values(ordered.at(name)))) << name;
      }
    }
  }
}

TEST_P(ImportanceTest, AfterOrderingTheFirstAreTheMostImportant) {
  const ModelSpec spec = random_spec(static_cast<uint64_t>(30 + GetParam()));
  const Weights weights = random_weights(spec, torch::kFloat64);
  const auto images = images64(spec, 3);
  const auto labels = torch::randint(spec.num_classes, {3});
  const auto is_falling = [](const torch::Tensor& scores) {
    return scores.numel() < 2 || (scores.diff() <= 1e-12).all().item<bool>();
  };
  const Weights by_size = reordered(spec, weights, magnitude(spec, weights));
  for (const Importance& block : magnitude(spec, by_size)) {
    EXPECT_TRUE(is_falling(block.heads));
    EXPECT_TRUE(is_falling(block.hidden));
  }
  const Weights by_loss = reordered(spec, weights, taylor(spec, weights, images, labels));
  for (const Importance& block : taylor(spec, by_loss, images, labels)) {
    EXPECT_TRUE(is_falling(block.heads));
    EXPECT_TRUE(is_falling(block.hidden));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ImportanceTest, testing::Values(0, 1, 2), [](const auto& p) {
  return std::string(std::array{"Vit", "T2t", "Swin"}[static_cast<size_t>(p.param)]);
});

TEST(MagnitudeTest, CountsEveryWeightOfAHeadOnce) {
  const ModelSpec spec = catalog_spec("swin_mini_32");  // head dim 16, width 64
  Weights weights = models::init(spec, 0);
  const auto scores = magnitude(spec, weights);
  const std::string prefix = "layers.0.blocks.1.attn.";
  const auto squares = [&](const torch::Tensor& tensor) {
    return tensor.to(torch::kFloat64).square().sum();
  };
  const auto qkv = weights.at(prefix + "qkv.weight").view({3, 4, 16, 64}).select(1, 2);
  const auto bias = weights.at(prefix + "qkv.bias").view({3, 4, 16}).select(1, 2);
  const auto proj = weights.at(prefix + "proj.weight").narrow(1, 32, 16);
  const auto table = weights.at(prefix + "relative_position_bias_table").select(1, 2);
  const double wanted =
      (squares(qkv) + squares(bias) + squares(proj) + squares(table)).item<double>();
  EXPECT_NEAR(scores[1].heads[2].item<double>(), wanted, 1e-12);
}

TEST(TaylorTest, PredictsTheChangeOfTheLossWhenAUnitFades) {
  torch::manual_seed(3);
  const ModelSpec spec = random_spec(6);
  const Weights weights = random_weights(spec, torch::kFloat64);
  const auto images = images64(spec, 1);
  const auto labels = torch::randint(spec.num_classes, {1});
  const auto scores = taylor(spec, weights, images, labels);
  const std::string name = "blocks.0.mlp.fc2.weight";
  constexpr double kStep = 1e-6;
  const auto loss = [&](double gate) {
    Weights faded = weights;
    auto matrix = weights.at(name).clone();
    matrix.select(1, 0).mul_(gate);
    faded.set(name, matrix);
    const auto logits = forward(spec, faded, images).logits();
    return torch::nn::functional::cross_entropy(logits, labels).item<double>();
  };
  const double slope = (loss(1 + kStep) - loss(1 - kStep)) / (2 * kStep);
  EXPECT_NEAR(scores[0].hidden[0].item<double>(), slope * slope, 1e-6 * (1 + slope * slope));
}

TEST(OrderingTest, MakesTheSmallNetworkNearerToTheLargeOne) {
  torch::manual_seed(0);
  const torch::NoGradGuard no_grad;
  const ModelSpec spec = catalog_spec("vit_mini_28");
  Weights weights = models::init(spec, 0);
  for (const TensorInfo& info : tensors(spec)) {  // half of the units hardly speak, at random
    if (!info.name.ends_with("fc2.weight")) continue;
    weights.at(info.name).mul_(torch::where(torch::rand({128}) < 0.5, 0.01, 20.0));
  }
  const Derived small = derive(spec, choice_from_keep(spec, 0.5), Geometry::kKept);
  const auto images = models::images_for(spec, 8);
  const auto wanted = forward(spec, weights, images).logits();
  const auto distance = [&](const Weights& large) {
    const auto logits = forward(small.spec, models::views(small, large), images).logits();
    return (logits - wanted).norm().item<double>();
  };
  EXPECT_LT(distance(reordered(spec, weights, magnitude(spec, weights))), 0.8 * distance(weights));
}

}  // namespace
}  // namespace adjoin::compress
