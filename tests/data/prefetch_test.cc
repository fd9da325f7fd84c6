// Built without LibTorch, so that `make tsan` sees every access of the threads.
#include "adjoin/data/prefetch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>

namespace adjoin::data {
namespace {

class PrefetcherTest : public testing::TestWithParam<int64_t> {};

TEST_P(PrefetcherTest, DoesEveryTaskOnceBeforeItsJobIsTakenOut) {
  Prefetcher prefetcher(GetParam());
  std::vector<std::vector<int>> done(20, std::vector<int>(7));
  size_t pushed = 0;
  for (size_t popped = 0; popped < done.size(); ++popped) {
    for (; pushed < std::min(popped + 3, done.size()); ++pushed) {
      std::vector<int>& own = done[pushed];
      prefetcher.push(7, [&own](int64_t task) { ++own[static_cast<size_t>(task)]; });
    }
    prefetcher.pop();
    EXPECT_EQ(done[popped], std::vector<int>(7, 1));
  }
  EXPECT_EQ(prefetcher.size(), 0);
}

TEST_P(PrefetcherTest, AJobWithoutTasksIsDone) {
  Prefetcher prefetcher(GetParam());
  prefetcher.push(0, [](int64_t) { FAIL(); });
  prefetcher.pop();
  EXPECT_EQ(prefetcher.size(), 0);
}

TEST_P(PrefetcherTest, ThrowsWhatTheFirstFailingTaskThrewAndGoesOn) {
  Prefetcher prefetcher(GetParam());
  for (int round = 0; round < 20; ++round) {
    prefetcher.push(16, [](int64_t task) {
      if (task >= 5) throw std::runtime_error("task " + std::to_string(task));
    });
    std::atomic<int> done = 0;
    prefetcher.push(3, [&](int64_t) { ++done; });
    try {
      prefetcher.pop();
      FAIL() << "no exception";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "task 5");
    }
    prefetcher.pop();
    EXPECT_EQ(done, 3);
  }
}

TEST_P(PrefetcherTest, NothingRunsAfterClear) {
  Prefetcher prefetcher(GetParam());
  int64_t total = 0;
  for (int round = 0; round < 50; ++round) {
    // Gone at the end of the round: a late task would write to it.
    std::vector<std::vector<int64_t>> own(3, std::vector<int64_t>(1000));
    for (std::vector<int64_t>& of_job : own) {
      prefetcher.push(1000, [&of_job](int64_t task) { of_job[static_cast<size_t>(task)] += 1; });
    }
    if (round % 2 == 0) prefetcher.pop();
    prefetcher.clear();
    EXPECT_EQ(prefetcher.size(), 0);
    for (const std::vector<int64_t>& of_job : own) {
      total = std::accumulate(of_job.begin(), of_job.end(), total);
    }
  }
  EXPECT_GE(total, 25 * 1000);
}

TEST_P(PrefetcherTest, EndsInTheMiddleOfItsWork) {
  std::atomic<int64_t> begun = 0;
  constexpr int64_t kTasks = int64_t{1} << 40;  // the rest is dropped, or this never ends
  {
    Prefetcher prefetcher(GetParam());
    prefetcher.push(kTasks, [&](int64_t) { ++begun; });
    while (GetParam() > 0 && begun < 100) std::this_thread::yield();
  }
  EXPECT_LT(begun, kTasks);
}

TEST_P(PrefetcherTest, SurvivesAnyOrderOfCalls) {
  std::atomic<int64_t> sum = 0;
  uint64_t state = 1;
  for (int life = 0; life < 20; ++life) {
    Prefetcher prefetcher(GetParam());
    for (int call = 0; call < 100; ++call) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const uint64_t draw = state >> 60;
      if (draw == 0) {
        prefetcher.clear();
      } else if (draw < 8 || prefetcher.size() == 0) {
        prefetcher.push(static_cast<int64_t>(draw), [&sum, draw](int64_t task) {
          if (draw == 5 && task == 2) throw std::runtime_error("five");
          sum += task;
        });
      } else {
        try {
          prefetcher.pop();
        } catch (const std::runtime_error&) {
        }
      }
    }
  }
  EXPECT_GT(sum, 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, PrefetcherTest, testing::Values(0, 1, 2, 5),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace adjoin::data
