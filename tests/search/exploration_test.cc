#include "adjoin/search/exploration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "adjoin/cost/cost.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/derive.h"

namespace adjoin::search {
namespace {

class ExplorationTest : public testing::TestWithParam<const char*> {
 protected:
  const ModelSpec large = catalog_spec(GetParam());
};

TEST_P(ExplorationTest, EveryDrawAndEveryChangeIsANetworkWithinTheLimits) {
  Target limits;
  limits.macs = cost(large).macs.total() * 6 / 10;
  const Exploration space(large, limits);
  Rng rng(1);
  for (int i = 0; i < 50; ++i) {
    const auto drawn = space.drawn(rng);
    ASSERT_TRUE(drawn.has_value());
    const auto changed = space.changed(*drawn, rng);
    ASSERT_TRUE(changed.has_value());
    EXPECT_NE(*changed, *drawn);
    for (const Choice& choice : {*drawn, *changed}) {
      const ModelSpec small = derive(large, choice, Geometry::kKept).spec;
      validate(small);
      EXPECT_LE(cost(small).macs.total(), *limits.macs);
      EXPECT_EQ(cost(small).macs.total(), space.price(choice).macs);
    }
  }
}

TEST_P(ExplorationTest, SkipsJoinBlocksOfTheSameTokensAndWidth) {
  const Exploration space(large, {});
  const std::vector<PlacedBlock> placed = placed_blocks(large);
  EXPECT_FALSE(space.pairs().empty());
  for (const SkipPair& pair : space.pairs()) {
    const PlacedBlock &from = placed[static_cast<size_t>(pair.from)],
                      &to = placed[static_cast<size_t>(pair.to)];
    EXPECT_EQ(from.embed_dim, to.embed_dim);
    EXPECT_EQ(from.tokens, to.tokens);
    EXPECT_GE(pair.to, pair.from + 2);
  }
}

TEST_P(ExplorationTest, ChangesReachEverythingDownToOneBlock) {
  const Exploration space(large, {});
  Rng rng(2);
  Choice choice = space.whole();
  std::set<size_t> kept;
  bool has_skip = false;
  for (int i = 0; i < 3000; ++i) {
    choice = *space.changed(choice, rng);
    const auto count =
        static_cast<size_t>(std::count_if(choice.blocks.begin(), choice.blocks.end(),
                                          [](const BlockChoice& block) { return block.keep; }));
    ASSERT_GE(count, 1U);
    kept.insert(count);
    has_skip = has_skip || !choice.skips.empty();
  }
  EXPECT_TRUE(kept.contains(1));
  EXPECT_TRUE(has_skip);
}

INSTANTIATE_TEST_SUITE_P(Models, ExplorationTest,
                         testing::Values("vit_mini_28", "t2t_mini_28", "swin_mini_28"),
                         [](const auto& p) { return std::string(p.param); });

TEST(ExplorationLimitsTest, NothingIsDrawnWhereNothingCanBeAfforded) {
  Target limits;
  limits.params = 10;
  const Exploration space(catalog_spec("vit_mini_28"), limits);
  Rng rng(3);
  EXPECT_FALSE(space.drawn(rng).has_value());
}

}  // namespace
}  // namespace adjoin::search
