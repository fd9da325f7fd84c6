#include "adjoin/search/reward.h"

#include <gtest/gtest.h>

#include <cmath>

namespace adjoin::search {
namespace {

TEST(ElasticRewardTest, WithTwoAndOneIsThatOfEsnac) {
  const ElasticReward reward;
  for (const double c : {0.0, 0.2, 0.55, 1.0}) {
    for (const double accuracy : {0.0, 0.4, 1.0, 1.1}) {
      EXPECT_NEAR(reward(c, accuracy), c * (2 - c) * accuracy, 1e-15);
    }
  }
}

TEST(ElasticRewardTest, RisesWithCompressionAndAccuracyWhateverItsShape) {
  for (const double a : {0.5, 1.0, 2.0, 5.0}) {
    for (const double b : {0.5, 1.0, 3.0}) {
      const ElasticReward reward{a, b};
      for (double x = 0.05; x < 0.95; x += 0.1) {
        EXPECT_LT(reward(x, 0.8), reward(x + 0.05, 0.8));
        EXPECT_LT(reward(0.6, x), reward(0.6, x + 0.05));
      }
    }
  }
}

TEST(ElasticRewardTest, OfANetworkLargerThanTheLargeOneIsNothing) {
  EXPECT_EQ(ElasticReward()(-0.3, 1), 0);
}

TEST(TrainingSpeedTest, IsTheSumOfTheLossesOfEpochs) {
  const std::vector<double> losses = {2.0, 1.5, 1.0};
  EXPECT_DOUBLE_EQ(training_speed(losses), 4.5);
  EXPECT_DOUBLE_EQ(training_speed_last(losses, 1), 1.0);
  EXPECT_DOUBLE_EQ(training_speed_last(losses, 2), 2.5);
  EXPECT_DOUBLE_EQ(training_speed_last(losses, 9), 4.5);
  EXPECT_DOUBLE_EQ(training_speed_average(losses, 0.9), 0.1 * (0.1 * 2 + 0.9 * 1.5) + 0.9);
  EXPECT_EQ(training_speed({}), 0);
}

TEST(TrainingSpeedTest, AsAnAccuracyIsAtMostThatOfTheLargeNetwork) {
  EXPECT_DOUBLE_EQ(speed_share(1, 2), 0.5);
  EXPECT_EQ(speed_share(2, 1), 1);
}

}  // namespace
}  // namespace adjoin::search
