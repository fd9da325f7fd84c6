#include "adjoin/search/exploration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "adjoin/cost/cost.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/derive.h"
#include "support/expect_error.h"
#include "support/random_choice.h"

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

TEST_P(ExplorationTest, PricesAreTheCostsOfTheNetworks) {
  const Exploration space(large, {},
                          {{NormPlacement::kPre, NormPlacement::kPost, NormPlacement::kResPost},
                           {SkipKind::kIdentity, SkipKind::kCirculant}});
  Rng rng(7);
  Choice choice = space.whole();
  for (int i = 0; i < 500; ++i) {
    const Cost counted = cost(derive(large, choice, Geometry::kKept).spec);
    EXPECT_EQ(space.price(choice), (Price{counted.macs.total(), counted.params}));
    choice = i % 10 == 0 ? *space.drawn(rng) : *space.changed(choice, rng);
  }
}

TEST_P(ExplorationTest, TheSameNetworkIsTheSameChoice) {
  const Exploration space(large, {});
  Rng rng(8);
  std::map<std::string, Choice> known;
  Choice choice = space.whole();
  for (int i = 0; i < 1000; ++i) {
    choice = i % 10 == 0 ? *space.drawn(rng) : *space.changed(choice, rng);
    const std::string text = spec_to_json(derive(large, choice, Geometry::kKept).spec).dump();
    EXPECT_EQ(known.emplace(text, choice).first->second, choice);
  }
}

TEST_P(ExplorationTest, ANetworkWithSkipsKeepsThemOnceOrLosesThem) {
  ModelSpec skipping = large;
  skipping.skips = {{0, 1}};
  const Exploration first(large, {});
  for (const SkipPair& pair : first.pairs()) skipping.skips.push_back({pair.from, pair.to});
  validate(skipping);
  const Exploration space(skipping, {});
  Rng rng(9);
  for (int i = 0; i < 200; ++i) {
    const Choice drawn = *space.drawn(rng);
    validate(derive(skipping, drawn, Geometry::kKept).spec);
    validate(derive(skipping, *space.changed(drawn, rng), Geometry::kKept).spec);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ExplorationTest,
                         testing::Values("vit_mini_28", "t2t_mini_28", "swin_mini_28"),
                         [](const auto& p) { return std::string(p.param); });

TEST_P(ExplorationTest, NormsAreThoseAllowedAndOneForAllBlocks) {
  const std::vector<NormPlacement> allowed = {NormPlacement::kPre, NormPlacement::kResPost};
  const Exploration space(large, {}, {allowed, {SkipKind::kIdentity, SkipKind::kCirculant}});
  Rng rng(5);
  std::set<NormPlacement> norms;
  std::set<SkipKind> kinds;
  Choice choice = *space.drawn(rng);
  for (int i = 0; i < 400; ++i) {
    choice = *space.changed(choice, rng);
    for (const BlockChoice& block : choice.blocks) EXPECT_EQ(block.norm, choice.blocks[0].norm);
    norms.insert(choice.blocks[0].norm);
    for (const Skip& skip : choice.skips) kinds.insert(skip.kind);
    validate(derive(large, choice, Geometry::kKept).spec);
  }
  EXPECT_EQ(norms, (std::set<NormPlacement>(allowed.begin(), allowed.end())));
  EXPECT_EQ(kinds.size(), 2U);
  EXPECT_TRUE(Exploration(large, {}, {{}, {}}).pairs().empty());
}

TEST_P(ExplorationTest, EvenTheSmallestTargetIsMet) {
  const Price least = Exploration(large, {}).least();
  Target limits;
  limits.macs = least.macs + least.macs / 20;
  const Exploration space(large, limits);
  check_feasible(space);
  Rng rng(6);
  for (int i = 0; i < 5; ++i) {
    const auto drawn = space.drawn(rng);
    ASSERT_TRUE(drawn.has_value());
    EXPECT_LE(space.price(*drawn).macs, *limits.macs);
    EXPECT_GE(space.price(*drawn).macs, least.macs);
  }
  limits.macs = least.macs - 1;
  expect_error(ErrorKind::kUsage, {"--target-macs", large.name, "MACs"},
               [&] { check_feasible(Exploration(large, limits)); });
}

TEST_P(ExplorationTest, TheLeastIsThatOfAnyNorm) {
  const ExplorationOptions more{{NormPlacement::kResPost, NormPlacement::kPre}, {}};
  const ExplorationOptions fewer{{NormPlacement::kPre, NormPlacement::kResPost}, {}};
  const Price least = Exploration(large, {}, more).least();
  EXPECT_EQ(least.params, Exploration(large, {}, fewer).least().params);
  EXPECT_LT(least.params, Exploration(large, {}, {{NormPlacement::kResPost}, {}}).least().params);
  check_feasible(Exploration(large, {{}, least.params}, more));
}

/// Also where blocks differ from each other in every part, and skips are there already.
TEST(PriceListTest, HoldsForNetworksOfAllKinds) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const ModelSpec large = random_divisible_spec(seed / 3, seed % 3, 1 + seed % 4);
    const PriceList prices(large);
    const Choice choice = random_choice(large, Geometry::kKept, 1, seed);
    const Cost counted = cost(derive(large, choice, Geometry::kKept).spec);
    EXPECT_EQ(prices.of(choice), (Price{counted.macs.total(), counted.params}))
        << spec_to_json(large).dump();
  }
}

TEST(ExplorationLimitsTest, NothingIsDrawnWhereNothingCanBeAfforded) {
  Target limits;
  limits.params = 10;
  const Exploration space(catalog_spec("vit_mini_28"), limits);
  Rng rng(3);
  EXPECT_FALSE(space.drawn(rng).has_value());
}

}  // namespace
}  // namespace adjoin::search
