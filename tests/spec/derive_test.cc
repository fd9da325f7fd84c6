#include "adjoin/spec/derive.h"

#include <gtest/gtest.h>

#include <set>

#include "adjoin/spec/catalog.h"
#include "support/expect_error.h"
#include "support/random_choice.h"

namespace adjoin {
namespace {

const Source& source_of(const Derived& derived, const std::string& name) {
  for (const Source& source : derived.sources) {
    if (source.tensor.name == name) return source;
  }
  throw std::runtime_error("no tensor " + name);
}

TEST(ChoiceTest, AlphaDividesHeadsAndHiddenUnitsOfEveryBlock) {
  const ModelSpec spec = catalog_spec("swin_tiny_patch4_window7_224");
  const Choice choice = choice_from_alphas(spec, {3});
  EXPECT_EQ(choice.blocks[0].heads, 1);
  EXPECT_EQ(choice.blocks[0].hidden, 128);
  EXPECT_EQ(choice.blocks[11].heads, 8);
  EXPECT_EQ(choice.blocks[11].hidden, 1024);
  EXPECT_EQ(choice_from_alphas(spec, {1}), keep_everything(spec));
}

TEST(ChoiceTest, AlphaThatDoesNotDivideIsRefusedWithTheLegalOnes) {
  const ModelSpec spec = catalog_spec("deit_tiny_patch16_224");
  expect_error(ErrorKind::kUsage, {"alpha 2", "3 heads", "blocks.0", "legal: 1, 3"},
               [&] { choice_from_alphas(spec, {2}); });
  expect_error(ErrorKind::kUsage, {"alpha 0"}, [&] { choice_from_alphas(spec, {0}); });
  expect_error(ErrorKind::kUsage, {"alpha -1"}, [&] { choice_from_alphas(spec, {-1}); });
  expect_error(ErrorKind::kUsage, {"2 alphas", "12 blocks"}, [&] {
    choice_from_alphas(spec, {1, 3});
  });
}

TEST(ChoiceTest, KeepRoundsHeadsAndTakesMultiplesOfEightUnits) {
  const ModelSpec spec = catalog_spec("deit_small_patch16_224");  // 6 heads, 1536 units
  EXPECT_EQ(choice_from_keep(spec, 0.5).blocks[3].heads, 3);
  EXPECT_EQ(choice_from_keep(spec, 0.5).blocks[3].hidden, 768);
  EXPECT_EQ(choice_from_keep(spec, 0.3).blocks[3].heads, 2);
  EXPECT_EQ(choice_from_keep(spec, 0.3).blocks[3].hidden, 464);  // 460.8
  EXPECT_EQ(choice_from_keep(spec, 0.001).blocks[3].heads, 1);
  EXPECT_EQ(choice_from_keep(spec, 0.001).blocks[3].hidden, 8);
  EXPECT_EQ(choice_from_keep(spec, 1), keep_everything(spec));
  for (const double wrong : {0.0, -0.5, 1.5, std::nan("")}) {
    expect_error(ErrorKind::kUsage, {"keep is", "above 0"}, [&] { choice_from_keep(spec, wrong); });
  }
}

TEST(ChoiceTest, IsRecoveredFromTheSpecsOfTheTwoNetworks) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const ModelSpec large = random_divisible_spec(seed, seed % 3, 2);
    const Geometry geometry = seed % 2 == 0 ? Geometry::kKept : Geometry::kNarrow;
    const Choice choice = random_choice(large, geometry, 2, seed);
    const ModelSpec small = derive(large, choice, geometry).spec;
    const Choice found = choice_between(large, small);
    EXPECT_EQ(derive(large, found, geometry).spec, small) << large.name;
    for (size_t i = 0; i < choice.blocks.size(); ++i) {
      EXPECT_EQ(found.blocks[i].keep, choice.blocks[i].keep);
    }
  }
}

TEST(ChoiceTest, OfAnotherNetworkIsRefused) {
  const ModelSpec deit = catalog_spec("deit_tiny_patch16_224");
  expect_error(ErrorKind::kUsage, {"swin", "no part"},
               [&] { choice_between(deit, catalog_spec("swin_mini_32")); });
  expect_error(ErrorKind::kUsage, {"block 12", "does not have"},
               [&] { choice_between(deit, catalog_spec("vit_large_patch16_224")); });
}

TEST(DeriveTest, KeptLeavesTheWidthAndNarrowDividesIt) {
  const ModelSpec spec = catalog_spec("swin_tiny_patch4_window7_224");
  const Choice choice = choice_from_alphas(spec, {3});
  const auto width = [&](Geometry geometry, size_t stage) {
    const Derived derived = derive(spec, choice, geometry);
    return std::get<SwinSpec>(derived.spec.family).stages[stage].embed_dim;
  };
  EXPECT_EQ(width(Geometry::kKept, 0), 96);
  EXPECT_EQ(width(Geometry::kNarrow, 0), 32);
  EXPECT_EQ(width(Geometry::kNarrow, 3), 256);
}

TEST(DeriveTest, SourcesSayWhichSliceATensorIs) {
  const ModelSpec spec = catalog_spec("swin_tiny_patch4_window7_224");
  const Derived kept = derive(spec, choice_from_alphas(spec, {3}), Geometry::kKept);
  const Source& qkv = source_of(kept, "layers.1.blocks.0.attn.qkv.weight");
  EXPECT_EQ(qkv.tensor.shape(), (std::vector<int64_t>{3 * 2 * 32, 192}));
  ASSERT_TRUE(qkv.slice);
  EXPECT_EQ(qkv.slice->name, qkv.tensor.name);
  EXPECT_EQ(qkv.slice->axes[0].groups, 3);
  EXPECT_EQ(qkv.slice->axes[0].count, 6);
  EXPECT_EQ(qkv.tensor.axes[0].count, 2);
  const Derived narrow = derive(spec, choice_from_alphas(spec, {3}), Geometry::kNarrow);
  const Source& merge = source_of(narrow, "layers.1.downsample.reduction.weight");
  EXPECT_EQ(merge.tensor.shape(), (std::vector<int64_t>{64, 4 * 32}));
  EXPECT_EQ(merge.slice->axes[1].groups, 4);
  EXPECT_EQ(merge.slice->axes[1].count, 96);
}

TEST(DeriveTest, RemovedBlocksShiftNamesButNotOriginsOrShifts) {
  const ModelSpec spec = catalog_spec("swin_tiny_patch4_window7_224");  // depths 2, 2, 6, 2
  Choice choice = keep_everything(spec);
  for (const size_t removed : {size_t{0}, size_t{1}, size_t{5}})
    choice.blocks[removed].keep = false;
  const Derived small = derive(spec, choice, Geometry::kKept);
  const auto& stages = std::get<SwinSpec>(small.spec.family).stages;
  EXPECT_TRUE(stages[0].blocks.empty());
  ASSERT_EQ(stages[2].blocks.size(), 5U);
  EXPECT_EQ(stages[2].blocks[0].origin, 4);
  EXPECT_EQ(stages[2].blocks[1].origin, 6);
  EXPECT_EQ(stages[2].blocks[0].shift, 0);
  EXPECT_EQ(stages[2].blocks[1].shift, 0);  // two unshifted blocks in a row, as they were trained
  EXPECT_EQ(source_of(small, "layers.2.blocks.1.norm1.weight").slice->name,
            "layers.2.blocks.2.norm1.weight");
}

TEST(DeriveTest, OfADerivedNetworkKeepsTheOriginsOfTheFirst) {
  const ModelSpec spec = catalog_spec("deit_tiny_patch16_224");
  Choice choice = keep_everything(spec);
  choice.blocks[2].keep = choice.blocks[7].keep = false;
  const ModelSpec ten = derive(spec, choice, Geometry::kKept).spec;
  choice = keep_everything(ten);
  choice.blocks[2].keep = false;  // the fourth of the first network
  const Derived nine = derive(ten, choice, Geometry::kKept);
  std::vector<int64_t> origins;
  for_each_block(nine.spec, [&](const BlockSpec& block) { origins.push_back(block.origin); });
  EXPECT_EQ(origins, (std::vector<int64_t>{0, 1, 4, 5, 6, 8, 9, 10, 11}));
  EXPECT_EQ(source_of(nine, "blocks.2.norm1.weight").slice->name, "blocks.3.norm1.weight");
}

TEST(DeriveTest, SkipsAreCountedOverTheBlocksThatStay) {
  const ModelSpec spec = catalog_spec("deit_tiny_patch16_224");
  Choice choice = keep_everything(spec);
  choice.blocks[1].keep = choice.blocks[4].keep = false;
  choice.skips = {{0, 2}, {3, 6}};
  const ModelSpec small = derive(spec, choice, Geometry::kKept).spec;
  EXPECT_EQ(small.skips, (std::vector<Skip>{{0, 1}, {2, 4}}));
  choice.skips = {{1, 3}};
  expect_error(ErrorKind::kUsage, {"skip 1 -> 3", "block 1 is removed"},
               [&] { derive(spec, choice, Geometry::kKept); });
  choice.skips = {{0, 99}};
  expect_error(ErrorKind::kUsage, {"block 99 does not exist"},
               [&] { derive(spec, choice, Geometry::kKept); });
}

TEST(DeriveTest, EveryTensorHasItsSliceInsideTheLargeOne) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const ModelSpec large = random_divisible_spec(seed, seed % 3, 2);
    const Geometry geometry = seed % 2 == 0 ? Geometry::kKept : Geometry::kNarrow;
    const Derived small = derive(large, random_choice(large, geometry, 2, seed), geometry);
    std::set<std::string> used;
    const auto infos = tensors(small.spec);
    ASSERT_EQ(small.sources.size(), infos.size());
    for (size_t i = 0; i < infos.size(); ++i) {
      const Source& source = small.sources[i];
      EXPECT_EQ(source.tensor.name, infos[i].name);
      ASSERT_TRUE(source.slice) << source.tensor.name;
      EXPECT_TRUE(used.insert(source.slice->name).second) << source.slice->name;
      ASSERT_EQ(source.slice->axes.size(), source.tensor.axes.size());
      for (size_t a = 0; a < source.slice->axes.size(); ++a) {
        EXPECT_LE(source.tensor.axes[a].count, source.slice->axes[a].count);
        EXPECT_EQ(source.tensor.axes[a].unit, source.slice->axes[a].unit);
      }
    }
  }
}

TEST(DeriveTest, NarrowRefusesUnequalFactorsAndNamesKept) {
  const ModelSpec spec = catalog_spec("deit_tiny_patch16_224");
  std::vector<int64_t> alphas(12, 3);
  alphas[5] = 1;
  expect_error(ErrorKind::kUsage, {"narrow", "blocks.5", "geometry kept"},
               [&] { derive(spec, choice_from_alphas(spec, alphas), Geometry::kNarrow); });
  Choice uneven = choice_from_alphas(spec, {3});
  uneven.blocks[0].hidden = 255;
  expect_error(ErrorKind::kUsage, {"blocks.0", "255 of 768", "geometry kept"},
               [&] { derive(spec, uneven, Geometry::kNarrow); });
  ModelSpec odd = spec;
  std::get<VitSpec>(odd.family).embed_dim = 100;
  expect_error(ErrorKind::kUsage, {"alpha 3", "width 100"},
               [&] { derive(odd, choice_from_alphas(odd, {3}), Geometry::kNarrow); });
}

TEST(DeriveTest, RefusesAChoiceThatDoesNotFit) {
  const ModelSpec spec = catalog_spec("deit_tiny_patch16_224");
  Choice choice = keep_everything(spec);
  choice.blocks[3].heads = 4;
  expect_error(ErrorKind::kUsage, {"heads of blocks.3", "4", "1 to 3"},
               [&] { derive(spec, choice, Geometry::kKept); });
  choice = keep_everything(spec);
  choice.blocks[0].hidden = 0;
  expect_error(ErrorKind::kUsage, {"hidden units of blocks.0"},
               [&] { derive(spec, choice, Geometry::kKept); });
  choice.blocks.pop_back();
  expect_error(ErrorKind::kUsage, {"11 blocks", "has 12"},
               [&] { derive(spec, choice, Geometry::kKept); });
  choice = keep_everything(spec);
  for (BlockChoice& block : choice.blocks) block.keep = false;
  expect_error(ErrorKind::kUsage, {"every block"}, [&] { derive(spec, choice, Geometry::kKept); });
}

}  // namespace
}  // namespace adjoin
