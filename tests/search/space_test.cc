#include <gtest/gtest.h>

#include "adjoin/core/rng.h"
#include "adjoin/cost/cost.h"
#include "adjoin/search/fit.h"
#include "adjoin/search/trials.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/derive.h"
#include "adjoin/spec/overrides.h"
#include "support/expect_error.h"

namespace adjoin::search {
namespace {

Scores random_scores(const Space& space, Rng& rng) {
  Scores scores;
  for (const auto& alphas : space.alphas()) {
    scores.emplace_back();
    for (size_t j = 0; j < alphas.size(); ++j) scores.back().push_back(rng.normal());
  }
  return scores;
}

std::vector<double> random_importance(const Space& space, Rng& rng) {
  std::vector<double> result;
  for (size_t i = 0; i < space.blocks(); ++i) result.push_back(rng.uniform());
  return result;
}

TEST(AmountTest, IsAShareOrANumberWithAUnit) {
  EXPECT_EQ(parse_amount("0.45x", 1000, "--t"), 450);
  EXPECT_EQ(parse_amount("1.2G", 1, "--t"), 1'200'000'000);
  EXPECT_EQ(parse_amount("300M", 1, "--t"), 300'000'000);
  EXPECT_EQ(parse_amount("7k", 1, "--t"), 7000);
  EXPECT_EQ(parse_amount("123456", 1, "--t"), 123456);
  EXPECT_EQ(parse_amount("1e6", 1, "--t"), 1'000'000);
  for (const char* bad :
       {"", "x", "0", "-1M", "0.5y", "1GG", "nan", "inf", "1 G", "0x", "1e300", "0.1", "1e18G"}) {
    expect_error(ErrorKind::kUsage, {"--t: \"", bad, "is no amount"},
                 [&] { parse_amount(bad, 1000, "--t"); });
  }
}

TEST(SpaceTest, CandidatesAreTheDivisorsOfTheFewestHeads) {
  EXPECT_EQ(Space(catalog_spec("vit_mini_32"), {}).alphas()[0], (std::vector<int64_t>{1, 2, 4, 8}));
  EXPECT_EQ(Space(catalog_spec("swin_tiny_patch4_window7_224"), {}).alphas().back(),
            (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(Space(catalog_spec("t2t_vit_14"), {}).alphas()[0], (std::vector<int64_t>{1, 2, 3, 6}));
}

TEST(SpaceTest, LeavesOutWhatDividesNotAndSaysSo) {
  const Space space(catalog_spec("swin_tiny_patch4_window7_224"), {2, 4});
  EXPECT_EQ(space.alphas()[0], std::vector<int64_t>{1});  // 3 heads: neither is legal
  EXPECT_EQ(space.alphas()[2], std::vector<int64_t>{2});
  ASSERT_FALSE(space.notes().empty());
  EXPECT_TRUE(contains(space.notes()[0], "layers.0.blocks.0: 2, 4 do not divide its 3 heads"))
      << space.notes()[0];
}

TEST(SpaceTest, RefusesCandidatesThatAreNone) {
  const ModelSpec spec = catalog_spec("vit_mini_32");
  expect_error(ErrorKind::kUsage, {"--candidates", "0"}, [&] { Space(spec, {1, 0}); });
  expect_error(ErrorKind::kUsage, {"--candidates", "-2"}, [&] { Space(spec, {-2}); });
  expect_error(ErrorKind::kUsage, {"--candidates", "1,2,2", "twice"}, [&] {
    Space(spec, {1, 2, 2});
  });
}

TEST(SpaceTest, PricesOfBlocksSumToThePriceOfTheNetwork) {
  for (const char* model : {"vit_mini_32", "t2t_mini_32", "swin_mini_32", "deit_small_patch16_224",
                            "swin_base_patch4_window7_224"}) {
    const Space space(catalog_spec(model), {});
    Rng rng(3);
    for (int k = 0; k < 10; ++k) {
      std::vector<size_t> picks;
      Price sum = space.rest();
      for (size_t i = 0; i < space.blocks(); ++i) {
        picks.push_back(
            static_cast<size_t>(rng.below(static_cast<int64_t>(space.alphas()[i].size()))));
        sum += space.price(i, picks.back());
      }
      Choice choice = space.choice(picks);
      EXPECT_EQ(sum, space.price(choice)) << model;
      choice.blocks[1].hidden -= 5;
      EXPECT_EQ(sum + space.unit_price(1) * -5, space.price(choice)) << model;
    }
  }
}

TEST(FitTest, LandsWithinOnePercentBelowEveryFeasibleTarget) {
  for (const char* model : {"vit_mini_32", "t2t_mini_32", "swin_mini_32", "deit_small_patch16_224",
                            "swin_base_patch4_window7_224", "t2t_vit_14"}) {
    const Space space(catalog_spec(model), {});
    const Price large = space.most();
    Rng rng(17);
    for (const double share : {0.22, 0.35, 0.45, 0.61, 0.7, 0.93, 1.0}) {
      Target target;
      target.macs = static_cast<int64_t>(share * static_cast<double>(large.macs));
      if (*target.macs < space.least().macs) continue;
      for (int k = 0; k < 20; ++k) {
        const Fitted fitted =
            fit(space, random_scores(space, rng), random_importance(space, rng), target);
        EXPECT_EQ(fitted.price, space.price(fitted.choice));
        EXPECT_LE(fitted.price.macs, *target.macs) << model << share;
        EXPECT_GE(static_cast<double>(fitted.price.macs), 0.99 * static_cast<double>(*target.macs))
            << model << " " << share;
        for (size_t i = 0; i < space.blocks(); ++i) {
          EXPECT_EQ(fitted.alphas[i] * fitted.choice.blocks[i].heads,
                    keep_everything(space.large()).blocks[i].heads);
        }
      }
      const Fitted even = *fit_evenly(space, target);
      EXPECT_LE(even.price.macs, *target.macs);
      EXPECT_GE(static_cast<double>(even.price.macs), 0.98 * static_cast<double>(*target.macs))
          << model << " " << share;
    }
  }
}

TEST(FitTest, OfTwoTargetsNeitherIsExceededAndTheBindingOneIsMet) {
  for (const char* model : {"vit_mini_32", "t2t_mini_32", "swin_mini_32"}) {
    const Space space(catalog_spec(model), {});
    const Price large = space.most();
    Rng rng(29);
    for (int k = 0; k < 40; ++k) {
      Target target;
      target.macs = static_cast<int64_t>(rng.uniform(0.35, 0.9) * static_cast<double>(large.macs));
      target.params =
          static_cast<int64_t>(rng.uniform(0.35, 0.9) * static_cast<double>(large.params));
      const Fitted fitted =
          fit(space, random_scores(space, rng), random_importance(space, rng), target);
      const double share = target.share(space.price(fitted.choice));
      EXPECT_LE(share, 1) << model;
      EXPECT_GE(share, 0.99) << model;
    }
  }
}

TEST(FitTest, TakesTheBestScoresThatCanBePaidAndCutsTheLeastImportantFirst) {
  const Space space(catalog_spec("vit_mini_32"), {});
  Scores scores(8, std::vector<double>{0, -5, -10, -15});
  EXPECT_EQ(fit(space, scores, std::vector<double>(8, 1), {}).alphas,
            std::vector<int64_t>(8, 1));  // no target
  // Blocks 2 and 5 are said to bear the most.
  scores[2] = scores[5] = {-9, -6, -3, 0};
  Target target;
  std::vector<size_t> picks(8, 0);
  picks[2] = picks[5] = 3;
  target.macs = space.price(space.choice(picks)).macs * 97 / 100;
  std::vector<double> importance(8, 1);
  importance[6] = 0.5;
  const Fitted fitted = fit(space, scores, importance, target);
  EXPECT_EQ(fitted.alphas, (std::vector<int64_t>{1, 1, 8, 1, 1, 8, 1, 1}));
  ASSERT_EQ(fitted.trims.size(), 1U);
  EXPECT_EQ(fitted.trims[0].block, "blocks.6");
  EXPECT_EQ(fitted.trims[0].from, 512);
  EXPECT_EQ(fitted.trims[0].to % 8, 0);
  const Fitted again = fitted_as(space, fitted.choice);
  EXPECT_EQ(again.alphas, fitted.alphas);
  EXPECT_EQ(again.trims.size(), 1U);
  EXPECT_EQ(again.price, fitted.price);
}

TEST(FitTest, AllAlikeIsNothingWhereNoFactorIsLegalEverywhere) {
  const Space space(catalog_spec("swin_tiny_patch4_window7_224"), {2, 4});
  Target target;
  target.macs = (space.least().macs + space.most().macs) / 2;
  EXPECT_FALSE(fit_evenly(space, target).has_value());
  EXPECT_LE(target.share(fit(space, Scores(12, {0, 0}), std::vector<double>(12, 1), target).price),
            1);
}

TEST(FitTest, KnowsBlocksOfOneHiddenUnit) {
  const Space space(with_overrides(catalog_spec("vit_mini_28"), {{"mlp_ratio", "0.02"}}), {});
  Target target;
  target.macs = space.most().macs * 9 / 10;
  const Fitted fitted =
      fit(space, Scores(4, std::vector<double>{1}), std::vector<double>(4, 1), target);
  EXPECT_EQ(fitted.choice.blocks[0].hidden, 1);
}

TEST(FitTest, RefusesWhatCannotBeReachedWithTheRange) {
  expect_error(ErrorKind::kUsage, {"--target-params", "0.258x to 0.505x"}, [] {
    check_feasible(Space(catalog_spec("vit_mini_32"), {2, 4}), {{}, 1000});
  });
  const Space space(catalog_spec("vit_mini_32"), {1, 2});
  const auto refused = [&](const Target& target, const char* flag) {
    expect_error(ErrorKind::kUsage, {flag, "vit_mini_32 can have", "MACs", "parameters"},
                 [&] { check_feasible(space, target); });
  };
  refused({1000, {}}, "--target-macs");
  refused({{}, 1000}, "--target-params");
  refused({int64_t{1} << 60, {}}, "--target-macs");
  check_feasible(space, {});
  check_feasible(space, {space.least().macs, space.least().params});
  check_feasible(space, {space.most().macs, {}});
}

TEST(ProposalTest, AllFitTheTargetDifferAndFollowFromTheSeed) {
  const Space space(catalog_spec("vit_mini_32"), {});
  Target target;
  target.macs = space.most().macs * 45 / 100;
  for (const auto propose : {random_proposal, evolved_proposal}) {
    std::vector<Trial> tried;
    for (int k = 0; k < 20; ++k) {
      const Fitted next = propose(space, target, 5, tried);
      EXPECT_EQ(next.choice, propose(space, target, 5, tried).choice);
      EXPECT_LE(target.share(next.price), 1);
      EXPECT_GE(target.share(next.price), 0.99);
      for (const Trial& trial : tried) EXPECT_NE(trial.fitted.choice, next.choice);
      tried.push_back({next, static_cast<double>(next.alphas[0] == 1)});
    }
    EXPECT_EQ(best(tried).worth, 1);
    EXPECT_NE(propose(space, target, 6, {}).choice, propose(space, target, 5, {}).choice);
  }
}

// What counts is whether the first block stays whole: evolution finds it out.
TEST(ProposalTest, EvolutionKeepsWhatIsGood) {
  const Space space(catalog_spec("vit_mini_32"), {});
  Target target;
  target.macs = space.most().macs * 45 / 100;
  const auto whole = [&](const auto propose) {
    std::vector<Trial> tried;
    double sum = 0;
    for (int k = 0; k < 60; ++k) {
      const Fitted next = propose(space, target, 9, tried);
      const double score = 1.0 / static_cast<double>(next.alphas[0] * next.alphas[3]);
      if (k >= 30) sum += score;
      tried.push_back({next, score});
    }
    return sum;
  };
  EXPECT_GT(whole(evolved_proposal), 1.3 * whole(random_proposal));
}

}  // namespace
}  // namespace adjoin::search
