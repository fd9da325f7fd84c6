#include "adjoin/models/slice.h"

#include <gtest/gtest.h>

#include "adjoin/models/forward.h"
#include "adjoin/models/init.h"
#include "adjoin/spec/catalog.h"
#include "models/laws.h"
#include "support/random_choice.h"
#include "support/random_weights.h"
#include "support/seeded_test.h"
#include "support/slicing_rule.h"

namespace adjoin::models {
namespace {

struct SliceCase {
  uint64_t family;
  Geometry geometry;
};

class SliceTest : public SeededTest, public testing::WithParamInterface<SliceCase> {};

TEST_P(SliceTest, NothingOutsideTheSlicesIsReadAndViewsEqualCopiesBitForBit) {
  const torch::NoGradGuard no_grad;
  const bool is_narrow = GetParam().geometry == Geometry::kNarrow;
  int removed = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto factor = static_cast<int64_t>(1 + seed % 4);
    const ModelSpec large = random_divisible_spec(seed, GetParam().family, factor);
    const Choice choice = random_choice(large, GetParam().geometry, factor, seed);
    const Derived small = derive(large, choice, GetParam().geometry);
    SCOPED_TRACE(large.name);
    for (const BlockChoice& block : choice.blocks) removed += block.keep ? 0 : 1;

    const Weights weights = random_weights(large);
    const SlicingRule rule(large, small.spec, is_narrow ? factor : 1);
    Weights ours = copies(small, weights);
    Weights by_rule, nan;
    for (const auto& [name, tensor] : weights) nan.set(name, torch::full_like(tensor, NAN));
    for (const TensorInfo& info : tensors(small.spec)) {
      const std::string from = rule.large_name(info.name);
      by_rule.set(info.name, cut(weights.at(from), rule.entries(info.name)).contiguous());
      nan.set(from, poisoned(weights.at(from), rule.entries(info.name)));
      ASSERT_TRUE(torch::equal(ours.at(info.name), by_rule.at(info.name))) << info.name;
    }
    const auto images = images_for(large, 2);
    const auto plain = forward(small.spec, by_rule, images).logits();
    const auto viewed = forward(small.spec, views(small, nan), images).logits();
    ASSERT_TRUE(plain.isfinite().all().item<bool>());
    ASSERT_TRUE(torch::equal(plain, viewed)) << (plain - viewed).abs().max();
  }
  EXPECT_GT(removed, 10);
}

TEST_P(SliceTest, CopiesHaveTheShapesOfTheSmallNetworkAndShareNothing) {
  const ModelSpec large = random_divisible_spec(7, GetParam().family, 2);
  const Derived small = derive(large, choice_from_alphas(large, {2}), GetParam().geometry);
  const Weights weights = random_weights(large);
  const Weights cut = copies(small, weights);
  const std::vector<TensorInfo> wanted = tensors(small.spec);
  ASSERT_EQ(cut.size(), wanted.size());
  for (const TensorInfo& info : wanted) {
    EXPECT_EQ(cut.at(info.name).sizes(), info.shape()) << info.name;
    EXPECT_TRUE(cut.at(info.name).is_contiguous()) << info.name;
  }
  const auto before = cut.at("norm.weight").clone();
  weights.at("norm.weight").zero_();
  EXPECT_TRUE(torch::equal(cut.at("norm.weight"), before));
}

TEST_P(SliceTest, ViewsFollowTheLargeNetwork) {
  const ModelSpec large = random_divisible_spec(11, GetParam().family, 2);
  const Derived small = derive(large, choice_from_alphas(large, {2}), GetParam().geometry);
  const Weights weights = random_weights(large);
  const Weights seen = views(small, weights);
  for (const auto& [name, tensor] : weights) tensor.fill_(3);
  for (const auto& [name, tensor] : seen) EXPECT_TRUE((tensor == 3).all().item<bool>()) << name;
}

TEST_P(SliceTest, KeepingEverythingGivesTheLargeNetworkBack) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const ModelSpec large = random_spec(3 * seed + GetParam().family);
    const Derived whole = derive(large, keep_everything(large), GetParam().geometry);
    EXPECT_EQ(whole.spec, large);
    const Weights weights = random_weights(large);
    const Weights seen = views(whole, weights);
    ASSERT_EQ(seen.size(), weights.size());
    for (const auto& [name, tensor] : weights) {
      EXPECT_TRUE(torch::equal(tensor, seen.at(name))) << name;
    }
  }
}

TEST_P(SliceTest, GradientsOfTheSmallNetworkFallIntoTheSlicesAlone) {
  const ModelSpec large = random_divisible_spec(5, GetParam().family, 2);
  const Derived small = derive(large, choice_from_alphas(large, {2}), GetParam().geometry);
  Weights weights = random_weights(large);
  require_gradients(large, weights);
  forward(small.spec, views(small, weights), images_for(large, 2))
      .logits()
      .square()
      .sum()
      .backward();
  const SlicingRule rule(large, small.spec, GetParam().geometry == Geometry::kNarrow ? 2 : 1);
  for (const TensorInfo& info : tensors(small.spec)) {
    const auto& tensor = weights.at(rule.large_name(info.name));
    if (!tensor.grad().defined()) continue;
    const auto is_outside = poisoned(torch::zeros(tensor.sizes()), rule.entries(info.name)).isnan();
    EXPECT_TRUE((tensor.grad().masked_select(is_outside) == 0).all().item<bool>()) << info.name;
  }
  const auto& qkv = weights.at(placed_blocks(large)[0].name + ".attn.qkv.weight");
  EXPECT_GT(qkv.grad().abs().sum().item<double>(), 0);
}

std::string case_name(const testing::TestParamInfo<SliceCase>& p) {
  constexpr const char* kFamilies[] = {"Vit", "T2t", "Swin"};
  return std::string(kFamilies[p.param.family]) +
         (p.param.geometry == Geometry::kKept ? "Kept" : "Narrow");
}

INSTANTIATE_TEST_SUITE_P(
    Families, SliceTest,
    testing::Values(SliceCase{0, Geometry::kKept}, SliceCase{0, Geometry::kNarrow},
                    SliceCase{1, Geometry::kKept}, SliceCase{1, Geometry::kNarrow},
                    SliceCase{2, Geometry::kKept}, SliceCase{2, Geometry::kNarrow}),
    case_name);

TEST(SliceOfQkvTest, HasTheRowsOfTheFirstHeadsInEachOfQueriesKeysAndValues) {
  const ModelSpec large = catalog_spec("deit_tiny_patch16_224");  // 3 heads of 64, width 192
  const Derived small = derive(large, choice_from_alphas(large, {3}), Geometry::kKept);
  Weights weights = init(large, 0);
  const auto row = torch::arange(3 * 192).to(torch::kFloat32);
  weights.set("blocks.4.attn.qkv.weight", row.unsqueeze(1).expand({3 * 192, 192}).contiguous());
  weights.set("blocks.4.attn.qkv.bias", row);
  const Weights cut = copies(small, weights);
  const auto wanted =
      torch::cat({row.narrow(0, 0, 64), row.narrow(0, 192, 64), row.narrow(0, 384, 64)});
  EXPECT_TRUE(torch::equal(cut.at("blocks.4.attn.qkv.bias"), wanted));
  EXPECT_TRUE(torch::equal(cut.at("blocks.4.attn.qkv.weight").select(1, 100), wanted));
}

TEST(SliceOfRealSizeTest, ViewsEqualCopiesBitForBit) {
  const torch::NoGradGuard no_grad;
  for (const char* name : {"deit_tiny_patch16_224", "swin_tiny_patch4_window7_224", "t2t_vit_7"}) {
    const ModelSpec large = catalog_spec(name);
    const int64_t alpha = std::string_view(name) == "t2t_vit_7" ? 2 : 3;
    const Weights weights = init(large, 0);
    const auto images = images_for(large, 1);
    for (const Geometry geometry : {Geometry::kKept, Geometry::kNarrow}) {
      const Derived small = derive(large, choice_from_alphas(large, {alpha}), geometry);
      EXPECT_TRUE(torch::equal(forward(small.spec, views(small, weights), images).logits(),
                               forward(small.spec, copies(small, weights), images).logits()))
          << name;
    }
  }
}

TEST(SliceOfSinusoidTest, IsThatOfTheLargeNetworkInANarrowT2t) {
  const ModelSpec large = catalog_spec("t2t_mini_32");
  const Derived small = derive(large, choice_from_alphas(large, {2}), Geometry::kNarrow);
  const Weights weights = init(large, 0);
  const auto cut = copies(small, weights).at("pos_embed");
  EXPECT_EQ(cut.size(2), 64);
  EXPECT_TRUE(torch::equal(cut, weights.at("pos_embed").narrow(2, 0, 64)));
  EXPECT_FALSE(torch::equal(cut, init(small.spec, 0).at("pos_embed")));
}

}  // namespace
}  // namespace adjoin::models
