#include "adjoin/spec/catalog.h"

#include <gtest/gtest.h>

#include <set>

#include "adjoin/spec/preprocessing.h"
#include "support/expect_error.h"

namespace adjoin {
namespace {

const std::vector<std::string> kNames = {
    "deit_tiny_patch16_224",
    "deit_small_patch16_224",
    "deit_base_patch16_224",
    "deit_tiny_distilled_patch16_224",
    "deit_small_distilled_patch16_224",
    "deit_base_distilled_patch16_224",
    "vit_tiny_patch16_224",
    "vit_small_patch16_224",
    "vit_base_patch16_224",
    "vit_large_patch16_224",
    "vit_mini_28",
    "vit_mini_32",
    "t2t_vit_7",
    "t2t_vit_10",
    "t2t_vit_12",
    "t2t_vit_14",
    "t2t_vit_19",
    "t2t_vit_24",
    "t2t_vit_t_14",
    "t2t_vit_t_19",
    "t2t_vit_t_24",
    "t2t_mini_28",
    "t2t_mini_32",
    "swin_tiny_patch4_window7_224",
    "swin_small_patch4_window7_224",
    "swin_base_patch4_window7_224",
    "swin_large_patch4_window7_224",
    "swin_base_patch4_window12_384",
    "swin_mini_28",
    "swin_mini_32",
};

template <class Family>
const Family& family_of(const ModelSpec& spec) {
  return std::get<Family>(spec.family);
}

/// What a row of a table says about the input.
void expect_input(const ModelSpec& spec, int64_t img_size, int64_t in_chans, int64_t num_classes) {
  EXPECT_EQ(spec.img_size, img_size);
  EXPECT_EQ(spec.in_chans, in_chans);
  EXPECT_EQ(spec.num_classes, num_classes);
}

template <class Blocks>
void expect_blocks(const Blocks& blocks, size_t depth, int64_t heads, int64_t head_dim,
                   int64_t hidden) {
  ASSERT_EQ(blocks.size(), depth);
  for (const BlockSpec& block : blocks) {
    EXPECT_EQ(block.heads, heads);
    EXPECT_EQ(block.head_dim, head_dim);
    EXPECT_EQ(block.hidden, hidden);
    EXPECT_EQ(block.drop_path, 0.0);
  }
}

TEST(CatalogTest, HoldsExactlyTheNamedModels) {
  const std::vector<std::string> names = catalog_names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()),
            std::set<std::string>(kNames.begin(), kNames.end()));
  EXPECT_EQ(names.size(), kNames.size());
}

class CatalogModelTest : public testing::TestWithParam<std::string> {};

TEST_P(CatalogModelTest, IsAValidSpecThatBearsItsName) {
  const ModelSpec spec = catalog_spec(GetParam());
  EXPECT_EQ(spec.name, GetParam());
  EXPECT_NO_THROW(validate(spec));
  EXPECT_EQ(spec.skips, std::vector<Skip>{});
}

TEST_P(CatalogModelTest, IsOfTheFamilyItsNameOpensWith) {
  const std::string word = GetParam().substr(0, GetParam().find('_'));
  EXPECT_EQ(family_name(catalog_spec(GetParam())), word == "deit" ? "vit" : word);
}

TEST_P(CatalogModelTest, CountsTheOriginsOfItsBlocksFromZero) {
  const ModelSpec spec = catalog_spec(GetParam());
  int64_t expected = 0;
  for (const PlacedBlock& placed : placed_blocks(spec)) {
    EXPECT_EQ(placed.block->origin, expected++);
  }
}

TEST_P(CatalogModelTest, HasHeadsThatFillTheResidualWidth) {
  const ModelSpec spec = catalog_spec(GetParam());
  for (const PlacedBlock& placed : placed_blocks(spec)) {
    EXPECT_EQ(placed.block->attention_dim(), placed.embed_dim) << placed.name;
  }
}

TEST_P(CatalogModelTest, IsFoundWithATagAfterItsName) {
  EXPECT_EQ(catalog_spec(GetParam() + ".some_in1k"), catalog_spec(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Models, CatalogModelTest, testing::ValuesIn(kNames),
                         [](const auto& p) { return p.param; });

TEST(CatalogTest, GivesTheNearestNamesForAWrongOne) {
  expect_error(ErrorKind::kUsage,
               {"unknown model \"deit_tny_patch16_224\"", "did you mean deit_tiny_patch16_224"},
               [] { catalog_spec("deit_tny_patch16_224"); });
  expect_error(ErrorKind::kUsage, {"did you mean swin_tiny_patch4_window7_224"},
               [] { catalog_spec("swin_tiny"); });
}

TEST(CatalogTest, ListsEveryNameWhenNoneIsNear) {
  for (const std::string& name : kNames) {
    expect_error(ErrorKind::kUsage, {"unknown model \"resnet\"", name},
                 [] { catalog_spec("resnet"); });
  }
}

TEST(CatalogTest, KnowsNoNameByItsTagAloneOrInCapitals) {
  for (const char* name : {"", ".fb_in1k", "VIT_MINI_28", "vit_mini_28 "}) {
    expect_error(ErrorKind::kUsage, {"unknown model"}, [&] { catalog_spec(name); });
  }
}

TEST(CatalogTest, GivesDeitItsPublishedFields) {
  const ModelSpec spec = catalog_spec("deit_small_patch16_224");
  expect_input(spec, 224, 3, 1000);
  EXPECT_TRUE(spec.qkv_bias);
  EXPECT_EQ(spec.norm_eps, 1e-6);
  const auto& vit = family_of<VitSpec>(spec);
  EXPECT_EQ(vit.patch_size, 16);
  EXPECT_EQ(vit.embed_dim, 384);
  EXPECT_EQ(vit.pool, PoolKind::kToken);
  EXPECT_EQ(vit.pos_embed, PosEmbed::kLearned);
  EXPECT_FALSE(vit.distilled);
  expect_blocks(vit.blocks, 12, 6, 64, 1536);
}

TEST(CatalogTest, GivesDistilledDeitTheSameBlocksAndASecondToken) {
  for (const std::string size : {"tiny", "small", "base"}) {
    const ModelSpec plain = catalog_spec("deit_" + size + "_patch16_224");
    const ModelSpec distilled = catalog_spec("deit_" + size + "_distilled_patch16_224");
    EXPECT_TRUE(family_of<VitSpec>(distilled).distilled);
    EXPECT_EQ(family_of<VitSpec>(distilled).blocks, family_of<VitSpec>(plain).blocks);
  }
}

TEST(CatalogTest, GivesT2tItsPublishedFields) {
  const ModelSpec spec = catalog_spec("t2t_vit_14");
  expect_input(spec, 224, 3, 1000);
  EXPECT_FALSE(spec.qkv_bias);
  EXPECT_EQ(spec.norm_eps, 1e-5);
  const auto& t2t = family_of<T2tSpec>(spec);
  EXPECT_EQ(t2t.tokens.kind, TokensKind::kPerformer);
  EXPECT_EQ(t2t.tokens.splits, (std::vector<Split>{{7, 4, 2}, {3, 2, 1}, {3, 2, 1}}));
  EXPECT_EQ(t2t.tokens.dim, 64);
  EXPECT_EQ(t2t.embed_dim, 384);
  EXPECT_EQ(t2t.pos_embed, PosEmbed::kSinusoid);
  expect_blocks(t2t.blocks, 14, 6, 64, 1152);
  expect_blocks(family_of<T2tSpec>(catalog_spec("t2t_vit_7")).blocks, 7, 4, 64, 512);
  EXPECT_EQ(family_of<T2tSpec>(catalog_spec("t2t_vit_t_14")).tokens.kind, TokensKind::kTransformer);
}

TEST(CatalogTest, GivesSwinItsPublishedFields) {
  const ModelSpec spec = catalog_spec("swin_tiny_patch4_window7_224");
  expect_input(spec, 224, 3, 1000);
  EXPECT_EQ(spec.norm_eps, 1e-5);
  const auto& swin = family_of<SwinSpec>(spec);
  EXPECT_EQ(swin.patch_size, 4);
  EXPECT_EQ(swin.window, 7);
  const std::vector<size_t> depths = {2, 2, 6, 2};
  ASSERT_EQ(swin.stages.size(), 4U);
  for (size_t s = 0; s < 4; ++s) {
    EXPECT_EQ(swin.stages[s].embed_dim, int64_t{96} << s);
    expect_blocks(swin.stages[s].blocks, depths[s], int64_t{3} << s, 32, int64_t{384} << s);
  }
}

TEST(CatalogTest, ShiftsOddBlocksOfSwinByHalfAWindowButNotWhereOneWindowIsTheGrid) {
  const ModelSpec tiny = catalog_spec("swin_tiny_patch4_window7_224");
  const ModelSpec large = catalog_spec("swin_base_patch4_window12_384");
  for (const auto& [spec, half] : {std::pair(&tiny, 3), std::pair(&large, 6)}) {
    const auto& stages = family_of<SwinSpec>(*spec).stages;
    for (size_t s = 0; s < stages.size(); ++s) {
      for (size_t b = 0; b < stages[s].blocks.size(); ++b) {
        EXPECT_EQ(stages[s].blocks[b].shift, s < 3 && b % 2 == 1 ? half : 0) << s << "." << b;
      }
    }
  }
}

TEST(CatalogTest, PinsTheSmallVits) {
  const ModelSpec small = catalog_spec("vit_mini_28");
  expect_input(small, 28, 1, 10);
  EXPECT_EQ(family_of<VitSpec>(small).patch_size, 7);
  EXPECT_EQ(family_of<VitSpec>(small).embed_dim, 64);
  expect_blocks(family_of<VitSpec>(small).blocks, 4, 8, 8, 128);
  const ModelSpec large = catalog_spec("vit_mini_32");
  expect_input(large, 32, 3, 10);
  EXPECT_EQ(family_of<VitSpec>(large).patch_size, 4);
  EXPECT_EQ(family_of<VitSpec>(large).embed_dim, 256);
  expect_blocks(family_of<VitSpec>(large).blocks, 8, 8, 32, 512);
}

TEST(CatalogTest, PinsTheSmallSwins) {
  for (const auto& [name, img_size, in_chans, window] :
       {std::tuple("swin_mini_28", 28, 1, 7), std::tuple("swin_mini_32", 32, 3, 4)}) {
    const ModelSpec spec = catalog_spec(name);
    expect_input(spec, img_size, in_chans, 10);
    const auto& swin = family_of<SwinSpec>(spec);
    EXPECT_EQ(swin.patch_size, 2);
    EXPECT_EQ(swin.window, window);
    ASSERT_EQ(swin.stages.size(), 2U);
    EXPECT_EQ(swin.stages[0].embed_dim, 64);
    EXPECT_EQ(swin.stages[1].embed_dim, 128);
    expect_blocks(swin.stages[0].blocks, 2, 4, 16, 128);
    expect_blocks(swin.stages[1].blocks, 4, 8, 16, 256);
  }
}

TEST(CatalogTest, PinsTheSmallT2ts) {
  for (const auto& [name, img_size, in_chans] :
       {std::tuple("t2t_mini_28", 28, 1), std::tuple("t2t_mini_32", 32, 3)}) {
    const ModelSpec spec = catalog_spec(name);
    expect_input(spec, img_size, in_chans, 10);
    EXPECT_EQ(family_of<T2tSpec>(spec).embed_dim, 128);
    expect_blocks(family_of<T2tSpec>(spec).blocks, 6, 8, 16, 256);
    EXPECT_GE(placed_blocks(spec).front().tokens - 1, 49);
  }
}

TEST(PreprocessingTest, IsThatOfThePublishedWeights) {
  const auto of = [](const char* name) { return default_preprocessing(catalog_spec(name)); };
  const std::vector<double> imagenet = {0.485, 0.456, 0.406};
  EXPECT_EQ(of("deit_tiny_patch16_224").mean, imagenet);
  EXPECT_EQ(of("deit_tiny_patch16_224").std, (std::vector<double>{0.229, 0.224, 0.225}));
  EXPECT_EQ(of("deit_tiny_patch16_224").crop_pct, 0.9);
  EXPECT_EQ(of("swin_tiny_patch4_window7_224").mean, imagenet);
  EXPECT_EQ(of("t2t_vit_14").interpolation, Interpolation::kBicubic);
  EXPECT_EQ(of("swin_base_patch4_window12_384").crop_pct, 1.0);
  EXPECT_EQ(of("vit_tiny_patch16_224").mean, (std::vector<double>{0.5, 0.5, 0.5}));
  EXPECT_EQ(of("vit_mini_28").mean, std::vector<double>{0.5});
  ModelSpec own = catalog_spec("deit_tiny_patch16_224");
  own.name = "vit_of_mine";  // a name of one's own means nothing
  EXPECT_EQ(default_preprocessing(own).mean, imagenet);
}

TEST(ModelNameTest, IsPlainText) {
  ModelSpec spec = catalog_spec("vit_mini_28");
  for (const char* name : {"\xff", "a\nb", "\x1b[31m"}) {
    spec.name = name;
    expect_error(ErrorKind::kConfig, {"model.name", "UTF-8"}, [&] { validate(spec); });
  }
  spec.name = "modèle à moi";
  validate(spec);
}

}  // namespace
}  // namespace adjoin
