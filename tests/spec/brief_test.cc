#include "adjoin/spec/brief.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace adjoin {
namespace {

Json brief(const std::string& text) { return Json::parse(text); }

TEST(BriefTest, GivesEveryBlockItsOwnHeadsAndHiddenUnits) {
  const ModelSpec spec = spec_from_brief(brief(
      R"({"name": "a", "embed_dim": 192, "depth": 2, "heads": [3, 4], "mlp_ratio": [3.5, 4],
          "head_dim": 64, "patch_size": 4, "img_size": 32, "num_classes": 10})"));
  const auto placed = placed_blocks(spec);
  ASSERT_EQ(placed.size(), 2U);
  EXPECT_EQ(placed[0].block->heads, 3);
  EXPECT_EQ(placed[1].block->attention_dim(), 256);
  EXPECT_EQ(placed[0].block->hidden, 672);
  EXPECT_EQ(placed[1].block->hidden, 768);
  EXPECT_EQ(placed[0].tokens, 65);
  EXPECT_EQ(spec.name, "a");
  EXPECT_EQ(spec.num_classes, 10);
}

TEST(BriefTest, OneNumberIsForAllBlocksAndHeadsShareTheWidth) {
  const ModelSpec spec =
      spec_from_brief(brief(R"({"embed_dim": 96, "depth": 3, "heads": 3, "mlp_ratio": 2,
                "head_dim": "embed_dim/heads"})"));
  for (const PlacedBlock& placed : placed_blocks(spec)) {
    EXPECT_EQ(placed.block->head_dim, 32);
    EXPECT_EQ(placed.block->hidden, 192);
  }
  EXPECT_EQ(spec.img_size, 224);
}

TEST(BriefTest, SaysWhatIsWrong) {
  const auto refused = [](const std::string& text, std::initializer_list<std::string_view> parts) {
    expect_error(ErrorKind::kConfig, parts, [&] { spec_from_brief(brief(text)); });
  };
  refused(R"({"depth": 3, "heads": 3, "mlp_ratio": 2})", {"embed_dim", "missing"});
  refused(R"({"embed_dim": 96, "depth": 3, "mlp_ratio": 2})", {"heads", "missing"});
  refused(R"({"embed_dim": 96, "depth": 3, "heads": [3, 3], "mlp_ratio": 2})",
          {"heads", "2 numbers for 3 blocks"});
  refused(R"({"embed_dim": 96, "depth": 1, "heads": 5, "mlp_ratio": 2})",
          {"5 of block 0", "embed_dim 96"});
  refused(R"({"embed_dim": 96, "depth": 1, "heads": 2.5, "mlp_ratio": 2})", {"block 0 has 2.5"});
  refused(R"({"embed_dim": 96, "depth": 1, "heads": 3, "mlp_ratio": 2, "head": 1})",
          {"unknown key", "head"});
  refused(R"({"embed_dim": 96, "depth": 1, "heads": 3, "mlp_ratio": 2, "head_dim": "x"})",
          {"head_dim", "embed_dim/heads"});
  refused(R"({"embed_dim": 96, "depth": 100000, "heads": 3, "mlp_ratio": 2})", {"depth"});
  refused("[1]", {"no object"});
}

}  // namespace
}  // namespace adjoin
