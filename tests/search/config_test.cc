#include "adjoin/search/config.h"

#include <gtest/gtest.h>

namespace adjoin::search {
namespace {

using Notes = std::vector<std::string>;

TEST(WithoutEffectTest, DefaultsOfNoMethodAreNamed) {
  for (const Method method :
       {Method::kDan, Method::kRandom, Method::kEvolve, Method::kUniform, Method::kBayes}) {
    SearchConfig config;
    config.method = method;
    EXPECT_EQ(without_effect(config), Notes()) << enum_name(method);
  }
}

TEST(WithoutEffectTest, NamesWhatTheMethodDoesNotRead) {
  SearchConfig config;
  config.trials = 20;
  config.bayes.jobs = 2;
  EXPECT_EQ(without_effect(config),
            (Notes{"jobs: has no effect without --method bayes",
                   "trials: has no effect without --method random, evolve or bayes"}));
  config.method = Method::kBayes;
  EXPECT_EQ(without_effect(config), Notes());
  config.method = Method::kUniform;
  config.bayes = {};
  config.trials = 10;
  config.search_fraction = 0.2;
  config.dan.gamma = 1;
  EXPECT_EQ(without_effect(config), (Notes{"gamma: has no effect without --method dan",
                                           "search_fraction: has no effect without a search"}));
}

TEST(WithoutEffectTest, NamesWhatAnotherFieldWouldHaveToAskFor) {
  SearchConfig config;
  config.method = Method::kBayes;
  config.bayes.tse_epochs = 2;
  config.bayes.tse_weight = 0.5;
  config.bayes.reward_by = RewardBy::kTseE;
  config.compress.order_images = 10;
  config.bayes.finalists = 3;
  EXPECT_EQ(without_effect(config),
            (Notes{"order_images: has no effect without --order taylor",
                   "tse_weight: has no effect without --reward-by tse-ema"}));
  config.retrain = false;
  config.compress.order = compress::Order::kTaylor;
  config.bayes.reward_by = RewardBy::kTseEma;
  EXPECT_EQ(without_effect(config), (Notes{"tse_epochs: has no effect without --reward-by tse-e",
                                           "finalists: has no effect without --retrain"}));
}

}  // namespace
}  // namespace adjoin::search
