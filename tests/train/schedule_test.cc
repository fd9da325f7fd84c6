#include "adjoin/train/schedule.h"

#include <gtest/gtest.h>

namespace adjoin::train {
namespace {

ScheduleOptions options(ScheduleKind kind) {
  ScheduleOptions o;
  o.sched = kind;
  o.warmup_epochs = 2;
  o.warmup_lr = 0.1;
  o.min_lr = 0.01;
  o.decay_epochs = 3;
  o.decay_rate = 0.5;
  return o;
}

TEST(ScheduleTest, WarmUpRisesLinearlyFromItsStartToTheFullRate) {
  const Schedule schedule(options(ScheduleKind::kConstant), 1, 10, 5);
  EXPECT_DOUBLE_EQ(schedule.lr(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.lr(5), 0.1 + 0.9 / 2);
  EXPECT_DOUBLE_EQ(schedule.lr(10), 1);
  EXPECT_DOUBLE_EQ(schedule.lr(49), 1);
  EXPECT_EQ(schedule.steps(), 50);
}

TEST(ScheduleTest, CosineFallsToItsFloorWhateverTheWarmUp) {
  const Schedule schedule(options(ScheduleKind::kCosine), 1, 10, 5);
  EXPECT_DOUBLE_EQ(schedule.lr(25), 0.01 + 0.99 / 2);  // half way
  EXPECT_NEAR(schedule.lr(50), 0.01, 1e-15);
  for (int64_t step = 11; step <= 50; ++step) EXPECT_LT(schedule.lr(step), schedule.lr(step - 1));
}

TEST(ScheduleTest, StepDropsByItsRateEverySoManyEpochs) {
  const Schedule schedule(options(ScheduleKind::kStep), 1, 10, 5);
  EXPECT_DOUBLE_EQ(schedule.lr(14), 1);
  EXPECT_DOUBLE_EQ(schedule.lr(15), 0.5);
  EXPECT_DOUBLE_EQ(schedule.lr(30), 0.25);
}

}  // namespace
}  // namespace adjoin::train
