#include "adjoin/spec/overrides.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "adjoin/spec/catalog.h"
#include "support/expect_error.h"
#include "support/random_spec.h"

namespace adjoin {
namespace {

using Changes = std::vector<Override>;
using Numbers = std::vector<int64_t>;

ModelSpec changed(std::string_view model, const Changes& changes) {
  return with_overrides(catalog_spec(model), changes);
}

/// One field of every block, in the order they run.
template <class Field>
auto of_blocks(const ModelSpec& spec, Field BlockSpec::*field) {
  std::vector<Field> values;
  for_each_block(spec, [&](const BlockSpec& block) { values.push_back(block.*field); });
  return values;
}

/// The shifts of a Swin, stage by stage.
std::vector<Numbers> shifts(const ModelSpec& spec) {
  std::vector<Numbers> values;
  for (const SwinStage& stage : std::get<SwinSpec>(spec.family).stages) {
    values.emplace_back();
    for (const SwinBlockSpec& block : stage.blocks) values.back().push_back(block.shift);
  }
  return values;
}

Numbers stage_dims(const ModelSpec& spec) {
  Numbers dims;
  for (const SwinStage& stage : std::get<SwinSpec>(spec.family).stages) {
    dims.push_back(stage.embed_dim);
  }
  return dims;
}

TEST(OverridesTest, ChangeNothingWhenThereAreNone) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    EXPECT_EQ(with_overrides(random_spec(seed), {}), random_spec(seed)) << seed;
  }
}

TEST(OverridesTest, SetAFieldToItsOwnValueWithoutAnyOtherEffect) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const ModelSpec spec = random_spec(seed);
    const Json json = spec_to_json(spec);
    for (const char* key : {"img_size", "num_classes", "qkv_bias", "norm_eps", "patch_size",
                            "window", "skips", "blocks", "stages"}) {
      if (!json.contains(key)) continue;
      EXPECT_EQ(with_overrides(spec, {{key, json[key].dump()}}), spec) << seed << " " << key;
    }
  }
}

TEST(OverridesTest, WriteTheFieldsOfTheSpec) {
  ModelSpec expected = catalog_spec("vit_mini_28");
  expected.name = "mine";
  expected.img_size = 35;
  expected.num_classes = 7;
  expected.in_chans = 4;
  expected.qkv_bias = false;
  expected.norm_eps = 1e-3;
  auto& vit = std::get<VitSpec>(expected.family);
  vit.pool = PoolKind::kAvg;
  vit.distilled = true;
  vit.pos_embed = PosEmbed::kSinusoid;
  vit.blocks[2].drop_path = 0.5;
  expected.skips = {{0, 3}};
  EXPECT_EQ(changed("vit_mini_28", {{"name", "mine"},
                                    {"img_size", "35"},
                                    {"num_classes", "7"},
                                    {"in_chans", "4"},
                                    {"qkv_bias", "false"},
                                    {"norm_eps", "1e-3"},
                                    {"pool", "avg"},
                                    {"distilled", "true"},
                                    {"pos_embed", "sinusoid"},
                                    {"blocks.2.drop_path", "0.5"},
                                    {"skips", R"([{"from":0,"to":3,"kind":"identity"}])"}}),
            expected);
}

TEST(OverridesTest, ReachIntoNestedFields) {
  const ModelSpec spec = changed(
      "t2t_mini_28",
      {{"tokens.kind", "transformer"}, {"tokens.splits.1.stride", "1"}, {"tokens.dim", "33"}});
  const TokensSpec& tokens = std::get<T2tSpec>(spec.family).tokens;
  EXPECT_EQ(tokens.kind, TokensKind::kTransformer);
  EXPECT_EQ(tokens.splits[1].stride, 1);
  EXPECT_EQ(tokens.dim, 33);
}

TEST(OverridesTest, KeepANameThatLooksLikeANumber) {
  EXPECT_EQ(changed("vit_mini_28", {{"name", "12"}}).name, "12");
}

TEST(DepthOverrideTest, KeepsTheFirstBlocksOfAShorterNetwork) {
  ModelSpec spec = catalog_spec("vit_mini_28");
  auto& blocks = std::get<VitSpec>(spec.family).blocks;
  for (size_t i = 0; i < 4; ++i) blocks[i].hidden = 10 + static_cast<int64_t>(i);
  EXPECT_EQ(of_blocks(with_overrides(spec, {{"depth", "2"}}), &BlockSpec::hidden),
            (Numbers{10, 11}));
}

TEST(DepthOverrideTest, RepeatsTheLastBlockOfALongerNetworkWithOriginsOfItsOwn) {
  ModelSpec spec = catalog_spec("vit_mini_28");
  std::get<VitSpec>(spec.family).blocks[3].hidden = 99;
  const ModelSpec longer = with_overrides(spec, {{"depth", "6"}});
  EXPECT_EQ(of_blocks(longer, &BlockSpec::hidden), (Numbers{128, 128, 128, 99, 99, 99}));
  EXPECT_EQ(of_blocks(longer, &BlockSpec::origin), (Numbers{0, 1, 2, 3, 4, 5}));
}

TEST(DepthOverrideTest, GivesEveryStageOfASwinItsDepthAndAlternatesShifts) {
  const ModelSpec spec = changed("swin_mini_32", {{"depth", "3,1"}});
  EXPECT_EQ(shifts(spec), (std::vector<Numbers>{{0, 2, 0}, {0}}));
  EXPECT_EQ(of_blocks(spec, &BlockSpec::origin), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(shifts(changed("swin_mini_32", {{"depth", "2"}})),
            (std::vector<Numbers>{{0, 2}, {0, 2}}));
}

TEST(HeadsOverrideTest, FillTheResidualWidthUnlessHeadDimIsGiven) {
  const ModelSpec filling = changed("vit_mini_28", {{"heads", "4"}});
  EXPECT_EQ(of_blocks(filling, &BlockSpec::heads), Numbers(4, 4));
  EXPECT_EQ(of_blocks(filling, &BlockSpec::head_dim), Numbers(4, 16));
  EXPECT_EQ(of_blocks(filling, &BlockSpec::hidden), Numbers(4, 128));
  const ModelSpec free = changed("vit_mini_28", {{"heads", "5"}, {"head_dim", "3"}});
  EXPECT_EQ(of_blocks(free, &BlockSpec::heads), Numbers(4, 5));
  EXPECT_EQ(of_blocks(free, &BlockSpec::head_dim), Numbers(4, 3));
}

TEST(HeadsOverrideTest, StayWhenHeadDimAloneIsGiven) {
  const ModelSpec spec = changed("vit_mini_28", {{"head_dim", "5"}});
  EXPECT_EQ(of_blocks(spec, &BlockSpec::heads), Numbers(4, 8));
  EXPECT_EQ(of_blocks(spec, &BlockSpec::head_dim), Numbers(4, 5));
}

TEST(HeadsOverrideTest, AreTakenPerBlockOrPerStageFromAList) {
  const ModelSpec vit = changed("vit_mini_28", {{"heads", "1,2,4,8"}});
  EXPECT_EQ(of_blocks(vit, &BlockSpec::heads), (Numbers{1, 2, 4, 8}));
  EXPECT_EQ(of_blocks(vit, &BlockSpec::head_dim), (Numbers{64, 32, 16, 8}));
  const ModelSpec swin = changed("swin_mini_28", {{"heads", "2,16"}});
  EXPECT_EQ(of_blocks(swin, &BlockSpec::heads), (Numbers{2, 2, 16, 16, 16, 16}));
  EXPECT_EQ(of_blocks(swin, &BlockSpec::head_dim), (Numbers{32, 32, 8, 8, 8, 8}));
}

TEST(HeadsOverrideTest, CountsAListOverTheBlocksThatDepthLeaves) {
  EXPECT_EQ(
      of_blocks(changed("vit_mini_28", {{"heads", "1,2"}, {"depth", "2"}}), &BlockSpec::heads),
      (Numbers{1, 2}));
}

TEST(EmbedDimOverrideTest, ScalesHeadDimAndHiddenWithIt) {
  const ModelSpec spec = changed("vit_mini_28", {{"embed_dim", "96"}});
  EXPECT_EQ(std::get<VitSpec>(spec.family).embed_dim, 96);
  EXPECT_EQ(of_blocks(spec, &BlockSpec::heads), Numbers(4, 8));
  EXPECT_EQ(of_blocks(spec, &BlockSpec::head_dim), Numbers(4, 12));
  EXPECT_EQ(of_blocks(spec, &BlockSpec::hidden), Numbers(4, 192));
}

TEST(EmbedDimOverrideTest, LeavesHeadsAloneThatDoNotFillTheWidth) {
  ModelSpec spec = catalog_spec("vit_mini_28");
  std::get<VitSpec>(spec.family).blocks[1].heads = 3;
  EXPECT_EQ(of_blocks(with_overrides(spec, {{"embed_dim", "32"}}), &BlockSpec::head_dim),
            (Numbers{4, 8, 4, 4}));
}

TEST(EmbedDimOverrideTest, IsThatOfTheFirstStageOfASwinAndDoubles) {
  const ModelSpec spec = changed("swin_tiny_patch4_window7_224", {{"embed_dim", "48"}});
  EXPECT_EQ(stage_dims(spec), (Numbers{48, 96, 192, 384}));
  const auto& stages = std::get<SwinSpec>(spec.family).stages;
  EXPECT_EQ(stages[3].blocks[0].head_dim, 16);
  EXPECT_EQ(stages[3].blocks[0].hidden, 4 * 384);
}

TEST(EmbedDimOverrideTest, IsTakenPerStageFromAList) {
  EXPECT_EQ(stage_dims(changed("swin_mini_28", {{"embed_dim", "32,80"}})), (Numbers{32, 80}));
}

TEST(MlpRatioOverrideTest, IsOfTheResidualWidth) {
  EXPECT_EQ(of_blocks(changed("vit_mini_28", {{"mlp_ratio", "3"}}), &BlockSpec::hidden),
            Numbers(4, 192));
  EXPECT_EQ(of_blocks(changed("vit_mini_28", {{"mlp_ratio", "0.5,1,1.5,2"}}), &BlockSpec::hidden),
            (Numbers{32, 64, 96, 128}));
  EXPECT_EQ(of_blocks(changed("vit_mini_28", {{"mlp_ratio", "3"}, {"embed_dim", "32"}}),
                      &BlockSpec::hidden),
            Numbers(4, 96));
  EXPECT_EQ(of_blocks(changed("swin_mini_28", {{"mlp_ratio", "1"}}), &BlockSpec::hidden),
            (Numbers{64, 64, 128, 128, 128, 128}));
}

TEST(DropPathOverrideTest, RisesEvenlyFromZeroAlongTheDepth) {
  for (const char* model : {"vit_mini_28", "t2t_mini_28", "swin_mini_28"}) {
    const auto rates = of_blocks(changed(model, {{"drop_path", "0.3"}}), &BlockSpec::drop_path);
    for (size_t i = 0; i < rates.size(); ++i) {
      EXPECT_DOUBLE_EQ(rates[i],
                       0.3 * static_cast<double>(i) / static_cast<double>(rates.size() - 1));
    }
  }
}

TEST(DropPathOverrideTest, IsZeroForTheOnlyBlock) {
  EXPECT_EQ(of_blocks(changed("vit_mini_28", {{"depth", "1"}, {"drop_path", "0.3"}}),
                      &BlockSpec::drop_path),
            std::vector<double>{0.0});
}

TEST(SwinShiftTest, FollowsTheWindow) {
  EXPECT_EQ(shifts(changed("swin_tiny_patch4_window7_224", {{"window", "14"}})),
            (std::vector<Numbers>{{0, 7}, {0, 7}, {0, 0, 0, 0, 0, 0}, {0, 0}}));
  EXPECT_EQ(shifts(changed("swin_mini_32", {{"window", "8"}})),
            (std::vector<Numbers>{{0, 4}, {0, 0, 0, 0}}));
}

TEST(SwinShiftTest, AppearsInALastStageThatOutgrowsOneWindow) {
  EXPECT_EQ(shifts(changed("swin_tiny_patch4_window7_224", {{"img_size", "448"}, {"window", "7"}})),
            (std::vector<Numbers>{{0, 3}, {0, 3}, {0, 3, 0, 3, 0, 3}, {0, 3}}));
}

TEST(SwinShiftTest, ComesBackWhenTheSizeDoes) {
  for (const char* img_size : {"448", "672"}) {
    const ModelSpec large = changed("swin_tiny_patch4_window7_224", {{"img_size", img_size}});
    EXPECT_EQ(with_overrides(large, {{"img_size", "224"}}),
              catalog_spec("swin_tiny_patch4_window7_224"));
  }
}

TEST(SwinShiftTest, OfABlockWhoseNeighbourWasRemovedStaysItsOwn) {
  ModelSpec spec = catalog_spec("swin_tiny_patch4_window7_224");
  for (const size_t stage : {0, 3}) {
    auto& blocks = std::get<SwinSpec>(spec.family).stages[stage].blocks;
    blocks.erase(blocks.begin());
  }
  EXPECT_EQ(shifts(with_overrides(spec, {{"num_classes", "5"}})),
            (std::vector<Numbers>{{3}, {0, 3}, {0, 3, 0, 3, 0, 3}, {0}}));
  EXPECT_EQ(shifts(with_overrides(spec, {{"img_size", "448"}})),
            (std::vector<Numbers>{{3}, {0, 3}, {0, 3, 0, 3, 0, 3}, {3}}));
}

TEST(SwinShiftTest, IsToldByTheCatalogOrByGaplessOriginsAndElseRefused) {
  ModelSpec spec = catalog_spec("swin_tiny_patch4_window7_224");
  auto& stages = std::get<SwinSpec>(spec.family).stages;
  stages[2].blocks.pop_back();                       // the last before stage 3
  stages[3].blocks.erase(stages[3].blocks.begin());  // and the first of it
  EXPECT_EQ(shifts(with_overrides(spec, {{"img_size", "448"}}))[3], Numbers{3});
  spec.name = "a network of its own";
  expect_error(ErrorKind::kConfig, {"model.stages.3", "cannot be told"}, [&] {
    with_overrides(spec, {{"img_size", "448"}});
  });
  ModelSpec whole = catalog_spec("swin_tiny_patch4_window7_224");
  whole.name = spec.name;
  EXPECT_EQ(shifts(with_overrides(whole, {{"img_size", "448"}}))[3], (Numbers{0, 3}));
}

TEST(SwinShiftTest, OfOneBlockIsWhatItsOwnKeySays) {
  EXPECT_EQ(shifts(changed("swin_mini_28", {{"stages.0.blocks.0.shift", "5"}})),
            (std::vector<Numbers>{{5, 3}, {0, 0, 0, 0}}));
  EXPECT_EQ(shifts(changed("swin_mini_28", {{"stages.0.blocks.0.shift", "5"}, {"img_size", "56"}})),
            (std::vector<Numbers>{{5, 3}, {0, 3, 0, 3}}));
}

TEST(OverrideOrderTest, DoesNotMatterForAVit) {
  Changes changes = {{"depth", "3"},       {"embed_dim", "96"},      {"heads", "4,2,1"},
                     {"mlp_ratio", "1.5"}, {"blocks.1.hidden", "7"}, {"drop_path", "0.2"}};
  const ModelSpec expected = changed("vit_mini_28", changes);
  const auto by_key = [](const Override& a, const Override& b) { return a.key < b.key; };
  std::sort(changes.begin(), changes.end(), by_key);
  do {
    ASSERT_EQ(changed("vit_mini_28", changes), expected);
  } while (std::next_permutation(changes.begin(), changes.end(), by_key));
  EXPECT_EQ(of_blocks(expected, &BlockSpec::hidden), (Numbers{144, 7, 144}));
  EXPECT_EQ(of_blocks(expected, &BlockSpec::head_dim), (Numbers{24, 48, 96}));
}

TEST(OverrideOrderTest, DoesNotMatterForASwin) {
  Changes changes = {{"img_size", "64"},
                     {"window", "8"},
                     {"depth", "2,3"},
                     {"heads", "2,4"},
                     {"stages.1.blocks.2.shift", "1"}};
  const ModelSpec expected = changed("swin_mini_32", changes);
  const auto by_key = [](const Override& a, const Override& b) { return a.key < b.key; };
  std::sort(changes.begin(), changes.end(), by_key);
  do {
    ASSERT_EQ(changed("swin_mini_32", changes), expected);
  } while (std::next_permutation(changes.begin(), changes.end(), by_key));
  EXPECT_EQ(shifts(expected), (std::vector<Numbers>{{0, 4}, {0, 4, 1}}));
}

TEST(OverrideOrderTest, LetsKeysOfSingleBlocksActAfterThoseOfTheWholeNetwork) {
  const ModelSpec spec = changed("vit_mini_28", {{"blocks.1.heads", "2"}, {"heads", "4"}});
  EXPECT_EQ(of_blocks(spec, &BlockSpec::heads), (Numbers{4, 2, 4, 4}));
  EXPECT_EQ(of_blocks(spec, &BlockSpec::head_dim), Numbers(4, 16));
}

TEST(OverrideOrderTest, LetsAKeyReachABlockThatDepthMakes) {
  const ModelSpec spec = changed("vit_mini_28", {{"blocks.5.hidden", "7"}, {"depth", "6"}});
  EXPECT_EQ(of_blocks(spec, &BlockSpec::hidden), (Numbers{128, 128, 128, 128, 128, 7}));
}

}  // namespace
}  // namespace adjoin
