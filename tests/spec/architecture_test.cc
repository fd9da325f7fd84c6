#include "adjoin/spec/architecture.h"

#include <gtest/gtest.h>

#include "adjoin/spec/catalog.h"
#include "adjoin/spec/derive.h"
#include "adjoin/spec/tensors.h"
#include "support/expect_error.h"

namespace adjoin {
namespace {

class ArchitectureTest : public testing::TestWithParam<const char*> {
 protected:
  /// One block removed, another norm, two skips.
  Choice explored() const {
    Choice choice = keep_everything(large);
    choice.blocks[1].keep = false;
    choice.blocks[2].heads = 1;
    choice.blocks[3].hidden = 8;
    for (BlockChoice& block : choice.blocks) block.norm = NormPlacement::kResPost;
    const auto last = static_cast<int64_t>(choice.blocks.size()) - 1;
    const int64_t other = last > 3 ? 3 : 0;  // of the same stage of a Swin
    choice.skips = {{other, last, SkipKind::kCirculant}, {2, last, SkipKind::kIdentity}};
    return choice;
  }

  const ModelSpec large = catalog_spec(GetParam());
};

TEST_P(ArchitectureTest, IsReadBackAsTheChoiceItWasMadeFrom) {
  const Choice choice = explored();
  const Json json = architecture_to_json(large, choice);
  EXPECT_EQ(architecture_from_json(large, json, "a.json"), choice);
  EXPECT_EQ(derive(large, architecture_from_json(large, json, "a.json"), Geometry::kKept).spec,
            derive(large, choice, Geometry::kKept).spec);
}

TEST_P(ArchitectureTest, WhatAFileLeavesOutIsAsInTheLargeNetwork) {
  Json json = architecture_to_json(large, keep_everything(large));
  json.erase("skips");
  for (Json& block : json.at("blocks")) {
    block.erase("keep");
    block.erase("norm");
  }
  EXPECT_EQ(architecture_from_json(large, json, "a.json"), keep_everything(large));
}

TEST_P(ArchitectureTest, DamageIsNamed) {
  const Json good = architecture_to_json(large, explored());
  const auto refused = [&](const char* pointer, const Json& value,
                           std::initializer_list<std::string_view> parts) {
    Json json = good;
    json[Json::json_pointer(pointer)] = value;
    expect_error(ErrorKind::kData, parts, [&] { architecture_from_json(large, json, "a.json"); });
  };
  refused("/blocks/0/keep", "yes", {"a.json", "keep"});
  refused("/blocks/0/norm", "above", {"a.json", "norm", "above"});
  refused("/skips", 3, {"a.json", "skips"});
  refused("/skips/0/kind", "dense", {"a.json", "kind", "dense"});
  refused("/blocks/0/heads", 4096, {"a.json", "more heads"});
}

INSTANTIATE_TEST_SUITE_P(Models, ArchitectureTest,
                         testing::Values("vit_mini_28", "t2t_mini_28", "swin_mini_28"),
                         [](const auto& p) { return std::string(p.param); });

TEST(CirculantSkipTest, KeepsItsNameWhenBlocksBeforeItAreRemoved) {
  ModelSpec large = catalog_spec("vit_mini_32");
  large.skips = {{2, 5, SkipKind::kCirculant}};
  Choice choice = keep_everything(large);
  choice.blocks[0].keep = false;
  const Derived small = derive(large, choice, Geometry::kKept);
  ASSERT_EQ(small.spec.skips.size(), 1U);
  EXPECT_EQ(small.spec.skips[0], (Skip{1, 4, SkipKind::kCirculant}));
  int found = 0;
  for (const Source& source : small.sources) {
    if (source.tensor.name != "blocks.4.skip2.weight") continue;
    ++found;
    ASSERT_TRUE(source.slice.has_value());
    EXPECT_EQ(source.slice->name, "blocks.5.skip2.weight");
  }
  EXPECT_EQ(found, 1);
}

TEST(CirculantSkipTest, IsNewWhereTheLargeNetworkHasNone) {
  const ModelSpec large = catalog_spec("vit_mini_32");
  Choice choice = keep_everything(large);
  choice.skips = {{0, 3, SkipKind::kCirculant}};
  int found = 0;
  for (const Source& source : derive(large, choice, Geometry::kKept).sources) {
    if (source.slice) continue;
    ++found;
    EXPECT_TRUE(source.tensor.name.starts_with("blocks.3.skip0.")) << source.tensor.name;
  }
  EXPECT_EQ(found, 2);  // weight and bias
}

}  // namespace
}  // namespace adjoin
