#include <gtest/gtest.h>

#include "adjoin/spec/catalog.h"
#include "adjoin/spec/overrides.h"
#include "support/expect_error.h"

namespace adjoin {
namespace {

void expect_refused(std::string_view model, const std::vector<Override>& changes,
                    std::initializer_list<std::string_view> parts) {
  expect_error(ErrorKind::kConfig, parts, [&] { with_overrides(catalog_spec(model), changes); });
}

TEST(OverrideErrorTest, NamesAnUnknownKeyAndWhatWasLikelyMeant) {
  expect_refused("vit_mini_28", {{"detph", "3"}},
                 {"unknown key model.detph", "did you mean depth"});
  expect_refused("vit_mini_28", {{"num_clases", "3"}}, {"did you mean num_classes"});
  expect_refused("vit_mini_28", {{"blocks.0.head", "3"}},
                 {"unknown key model.blocks.0.head", "heads"});
  expect_refused("vit_mini_28", {{"", "3"}}, {"unknown key model."});
}

TEST(OverrideErrorTest, ListsEveryLegalKeyOnceWhenNoneIsNear) {
  for (const char* model : {"vit_mini_28", "t2t_mini_28", "swin_mini_28"}) {
    try {
      with_overrides(catalog_spec(model), {{"zzzzzzzzzz", "1"}});
      FAIL() << "accepted an unknown key";
    } catch (const Error& e) {
      const std::string message = e.what();
      for (const char* key : {" img_size,", " depth,", " heads,", " mlp_ratio,", " embed_dim"}) {
        EXPECT_TRUE(contains(message, key)) << key << " in: " << message;
        EXPECT_EQ(message.find(key), message.rfind(key)) << key << " in: " << message;
      }
    }
  }
}

TEST(OverrideErrorTest, KnowsTheKeysOfTheFamilyOnly) {
  expect_refused("vit_mini_28", {{"window", "7"}}, {"unknown key model.window"});
  expect_refused("swin_mini_28", {{"blocks.0.heads", "2"}}, {"unknown key model.blocks"});
  expect_refused("swin_mini_28", {{"pool", "avg"}}, {"unknown key model.pool"});
}

TEST(OverrideErrorTest, SaysHowManyEntriesAListHas) {
  expect_refused("vit_mini_28", {{"blocks.4.heads", "2"}},
                 {"model.blocks: no entry \"4\"; there are 4"});
  expect_refused("vit_mini_28", {{"blocks.-1.heads", "2"}}, {"model.blocks: no entry \"-1\""});
  expect_refused("vit_mini_28", {{"blocks.1x.heads", "2"}}, {"model.blocks: no entry \"1x\""});
  expect_refused("vit_mini_28", {{"blocks.", "2"}}, {"model.blocks: no entry \"\""});
  expect_refused("vit_mini_28", {{"blocks.3.hidden", "2"}, {"depth", "3"}},
                 {"model.blocks: no entry \"3\"; there are 3"});
}

TEST(OverrideErrorTest, SaysWhereAPathGoesTooFar) {
  expect_refused("vit_mini_28", {{"img_size.x", "2"}}, {"model.img_size: has no fields"});
}

TEST(OverrideErrorTest, DoesNotLetFamilyAndVersionChange) {
  expect_refused("vit_mini_28", {{"family", "swin"}}, {"model.family: cannot be changed"});
  expect_refused("vit_mini_28", {{"version", "1"}}, {"model.version: cannot be changed"});
}

TEST(OverrideErrorTest, WantsPositiveWholeNumbersForCounts) {
  for (const char* key : {"heads", "head_dim", "depth", "embed_dim"}) {
    for (const char* value : {"0", "-1", "1.5", "abc", "", "4,", ",4", "1,,2", "4 ", "nan", "inf",
                              "1e400", "0x10", "99999999999"}) {
      SCOPED_TRACE(std::string(key) + "=" + value);
      expect_refused("vit_mini_28", {{key, value}},
                     {std::string("model.") + key, std::string("\"") + value + "\"",
                      "must be a positive integer"});
    }
  }
}

TEST(OverrideErrorTest, WantsAPositiveRatio) {
  for (const char* value : {"0", "-2", "x", "nan", "inf", "2,0,2,2"}) {
    expect_refused("vit_mini_28", {{"mlp_ratio", value}},
                   {"model.mlp_ratio: is ", "must be a positive number"});
  }
}

TEST(OverrideErrorTest, WantsADropRateBelowOne) {
  for (const char* value : {"1", "-0.1", "x", "nan", "2"}) {
    expect_refused("vit_mini_28", {{"drop_path", value}}, {"model.drop_path: is ", "0 to 0.99"});
  }
}

TEST(OverrideErrorTest, NamesTheDivisorsWhenHeadsDoNotDivideTheWidth) {
  expect_refused(
      "vit_mini_28", {{"heads", "7"}},
      {"model.heads: 7 does not divide embed_dim 64", "1, 2, 4, 8, 16, 32, 64", "head_dim"});
  expect_refused("vit_mini_28", {{"embed_dim", "50"}},
                 {"8 does not divide embed_dim 50", "1, 2, 5, 10, 25, 50"});
}

TEST(OverrideErrorTest, SaysHowManyValuesAListMustHave) {
  expect_refused("vit_mini_28", {{"heads", "1,2,4"}},
                 {"model.heads: has 3 values, must have 1 or 4"});
  expect_refused("swin_mini_28", {{"depth", "2,2,2"}},
                 {"model.depth: has 3 values, must have 1 or 2"});
}

TEST(OverrideErrorTest, DoesNotSayOneOrOne) {
  for (const char* key : {"depth", "embed_dim", "drop_path"}) {
    try {
      with_overrides(catalog_spec("vit_mini_28"), {{key, "0.5,0.5"}});
      FAIL() << "accepted two values for " << key;
    } catch (const Error& e) {
      EXPECT_FALSE(contains(e.what(), "1 or 1")) << e.what();
    }
    try {
      with_overrides(catalog_spec("vit_mini_28"),
                     {{key, key == std::string("drop_path") ? "0.1,0.2" : "2,2"}});
      FAIL() << "accepted two values for " << key;
    } catch (const Error& e) {
      EXPECT_FALSE(contains(e.what(), "1 or 1")) << e.what();
    }
  }
}

TEST(OverrideErrorTest, BoundsTheDepth) {
  expect_refused("vit_mini_28", {{"depth", "1025"}}, {"model.depth: is 1025, must be 1 to 1024"});
}

TEST(OverrideErrorTest, WantsValuesOfTheRightType) {
  expect_refused("vit_mini_28", {{"img_size", "big"}},
                 {"model.img_size: is \"big\"", "an integer"});
  expect_refused("vit_mini_28", {{"img_size", "28.0"}}, {"model.img_size: is 28.0", "an integer"});
  expect_refused("vit_mini_28", {{"img_size", "1e400"}}, {"model.img_size", "an integer"});
  expect_refused("vit_mini_28", {{"qkv_bias", "yes"}}, {"model.qkv_bias", "true or false"});
  expect_refused("vit_mini_28", {{"pool", "max"}}, {"model.pool", "\"max\"", "token, avg"});
  expect_refused("vit_mini_28", {{"blocks.0", "5"}}, {"model.blocks.0: is 5, must be an object"});
  expect_refused("vit_mini_28", {{"skips", "3"}}, {"model.skips: is 3, must be a list"});
}

TEST(OverrideErrorTest, NamesTheLegalSizesOfAnImage) {
  expect_refused("vit_mini_28", {{"img_size", "30"}}, {"model.img_size: 30", "28 or 35"});
  expect_refused("swin_tiny_patch4_window7_224", {{"img_size", "256"}},
                 {"model.img_size: 256", "224 or 448", "legal windows at 256"});
}

TEST(OverrideErrorTest, ChecksTheSpecThatAllChangesMakeTogether) {
  expect_refused("vit_mini_28",
                 {{"skips", R"([{"from":0,"to":3,"kind":"identity"}])"}, {"depth", "3"}},
                 {"model.skips: 0 -> 3", "0 to 2"});
  expect_refused("vit_mini_28", {{"blocks", "[]"}}, {"model.blocks: has 0 blocks"});
  expect_refused("swin_mini_28", {{"stages", "[]"}}, {"model.stages: has 0"});
  expect_refused("t2t_mini_28", {{"tokens.splits", "[]"}}, {"model.tokens.splits: has 0"});
  const ModelSpec spec =
      with_overrides(catalog_spec("vit_mini_28"), {{"img_size", "30"}, {"patch_size", "5"}});
  EXPECT_EQ(placed_blocks(spec).front().tokens, 37);
}

TEST(OverrideErrorTest, SurvivesAValueNestedAThousandLevelsDeep) {
  expect_refused("vit_mini_28", {{"skips", std::string(1000, '[') + std::string(1000, ']')}},
                 {"model.skips: nests deeper"});
}

}  // namespace
}  // namespace adjoin
