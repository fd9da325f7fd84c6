#include "adjoin/core/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "support/expect_error.h"

namespace adjoin {
namespace {

class ProgressTest : public testing::Test {
 protected:
  Progress make(ProgressStyle style, size_t columns = 101) {
    return Progress(err_, style, [this] { return now_; }, {[columns] { return columns; }, true});
  }

  /// What was written since the last call.
  std::string written() {
    std::string text = err_.str();
    err_.str("");
    return text;
  }

  std::ostringstream err_;
  double now_ = 1000;
};

size_t count_of(const std::string& text, char c) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), c));
}

TEST_F(ProgressTest, DrawsABarInPlaceAndEndsItAsOneLine) {
  Progress progress = make(ProgressStyle::kBar);
  progress.begin("epoch 1/2", 100);
  EXPECT_EQ(written(), "\repoch 1/2 ──────────────────────────────   0 %\x1b[K");
  now_ += 30;
  progress.update(50, "loss 2");
  EXPECT_EQ(written(), "\repoch 1/2 ━━━━━━━━━━━━━━━───────────────  50 %  loss 2\x1b[K");
  now_ += 45;
  progress.finish("loss 1  acc 70 %");
  EXPECT_EQ(written(), "\r\x1b[Kepoch 1/2  loss 1  acc 70 %  in 1:15\n");
}

TEST_F(ProgressTest, RedrawsTheBarAtMostTenTimesASecond) {
  Progress progress = make(ProgressStyle::kBar);
  progress.begin("x", 10000);
  written();
  for (int i = 1; i <= 10000; ++i) {
    now_ += 0.001;
    progress.update(i, "");
  }
  const size_t drawn = count_of(written(), '\r');
  EXPECT_LE(drawn, 101U);
  EXPECT_GE(drawn, 90U);
}

TEST_F(ProgressTest, NeverFillsTheLastColumn) {
  for (size_t columns = 0; columns < 100; ++columns) {
    Progress progress = make(ProgressStyle::kBar, columns);
    progress.begin("epoch 1/2", 100);
    now_ += 1;
    progress.update(50, "loss 2.345  and more");
    std::string text = written();
    text = text.substr(text.rfind('\r') + 1);
    EXPECT_LT(columns_of(text.substr(0, text.find('\x1b')), true), std::max<size_t>(columns, 2));
  }
}

TEST_F(ProgressTest, PutsNotesAboveTheBar) {
  Progress progress = make(ProgressStyle::kBar);
  progress.note("no bar yet");
  EXPECT_EQ(written(), "no bar yet\n");
  progress.begin("x", 10);
  const std::string bar = written();
  progress.note("saved\nlast.ckpt");
  EXPECT_EQ(written(), "\r\x1b[Ksaved\\x0alast.ckpt\n" + bar);
  progress.finish("");
  EXPECT_EQ(written(), "\r\x1b[Kx  in 0.0 s\n");
  progress.note("after");
  EXPECT_EQ(written(), "after\n");
}

TEST_F(ProgressTest, ClearsAnUnfinishedBarWhenItGoes) {
  {
    Progress progress = make(ProgressStyle::kBar);
    progress.begin("x", 10);
    written();
  }
  EXPECT_EQ(written(), "\r\x1b[K");
}

TEST_F(ProgressTest, WritesPlainLinesNowAndThenWhereNobodyWatches) {
  {
    Progress progress = make(ProgressStyle::kLines);
    progress.begin("epoch 1/2", 1000);
    for (int i = 1; i <= 250; ++i) {
      now_ += 0.1;
      progress.update(i, "loss 2");
    }
    progress.note("saved");
    progress.finish("loss 1");
    progress.begin("epoch 2/2", 1000);
  }
  EXPECT_EQ(written(),
            "epoch 1/2  10 %  loss 2  1:30 left\nepoch 1/2  20 %  loss 2  1:20 left\nsaved\n"
            "epoch 1/2  loss 1  in 25 s\n");
}

TEST_F(ProgressTest, SaysNothingWhenToldSo) {
  Progress progress = make(ProgressStyle::kSilent);
  progress.begin("x", 10);
  now_ += 100;
  progress.update(5, "y");
  progress.note("z");
  progress.finish("w");
  EXPECT_EQ(written(), "");
}

TEST_F(ProgressTest, ChoosesLinesForAStreamThatIsNoTerminal) {
  Progress progress = make(ProgressStyle::kAuto);
  progress.begin("x", 10);
  progress.finish("done");
  EXPECT_EQ(written(), "x  done  in 0.0 s\n");
}

TEST_F(ProgressTest, ShowsTheTimeLeftOnlyOnceItCanBeKnown) {
  Progress progress = make(ProgressStyle::kBar);
  progress.begin("x", 100);
  now_ += 20;  // a first step that warms up
  progress.update(1, "");
  EXPECT_FALSE(contains(written(), "left"));
  for (int i = 2; i <= 5; ++i) {
    now_ += 0.5;
    progress.update(i, "");
  }
  EXPECT_TRUE(contains(written(), "  48 s left"));  // 95 more at 0.5 s
}

TEST_F(ProgressTest, FollowsAChangeOfPace) {
  Progress progress = make(ProgressStyle::kBar);
  progress.begin("x", 10000);
  for (int i = 1; i <= 100; ++i) {
    now_ += 1;
    progress.update(i, "");
  }
  for (int i = 101; i <= 1100; ++i) {
    now_ += 0.1;
    progress.update(i, "");
  }
  const std::string text = written();
  EXPECT_TRUE(contains(text.substr(text.rfind('\r')), "14:5")) << text.substr(text.rfind('\r'));
}

TEST_F(ProgressTest, ExpectsTheRestOfTheRunToGoAsItWentSoFar) {
  Progress progress = make(ProgressStyle::kBar, 200);
  const auto epoch = [&](int number, int64_t until) {
    progress.begin("epoch", 100, {.before = 0.1 * number, .share = 0.1});
    for (int64_t i = 1; i <= until; ++i) {
      now_ += 1;
      progress.update(i, "");
    }
  };
  epoch(3, 100);  // a run taken up after its third epoch
  progress.finish("");
  now_ += 20;  // validation, which has no bar
  written();
  epoch(4, 50);
  const std::string text = written();
  // 50 s for this epoch; both with the pause take 220 s, and half of the run comes after.
  EXPECT_TRUE(contains(text.substr(text.rfind('\r')), "50 s left, run 10:00 left"))
      << text.substr(text.rfind('\r'));
}

TEST_F(ProgressTest, SpeaksOfTheUnitAloneWhenItIsTheLast) {
  Progress progress = make(ProgressStyle::kBar, 200);
  progress.begin("epoch", 100, {.before = 0.9, .share = 0.1});
  for (int i = 1; i <= 50; ++i) {
    now_ += 1;
    progress.update(i, "");
  }
  const std::string text = written();
  EXPECT_TRUE(contains(text, "50 s left"));
  EXPECT_FALSE(contains(text, "run"));
}

TEST_F(ProgressTest, KeepsTheLengthOfTheBarWhenTheTextGetsShorter) {
  Progress progress = make(ProgressStyle::kBar, 60);
  const auto bar_length = [&] {
    const std::string text = written();
    return std::count(text.begin() + static_cast<int64_t>(text.rfind('\r')), text.end(), '\x94');
  };
  progress.begin("x", 100);
  EXPECT_EQ(bar_length(), 30);
  for (const auto& [text, length] : {std::pair("loss 2.345  acc 56.7 %  12", 18), {"loss 2", 18}}) {
    now_ += 0.2;
    progress.update(1, text);
    EXPECT_EQ(bar_length(), length);
  }
  progress.finish("");
  progress.begin("x", 100);
  EXPECT_EQ(bar_length(), 30);
}

TEST_F(ProgressTest, TakesAnUnknownTotalAndCountsThatRunOver) {
  Progress progress = make(ProgressStyle::kBar);
  progress.begin("scan", 0);
  now_ += 5;
  progress.update(123, "123 images");
  EXPECT_TRUE(contains(written(), "scan  123 images\x1b[K"));
  progress.begin("x", 10);
  now_ += 5;
  progress.update(12, "");
  EXPECT_TRUE(contains(written(), "100 %"));
}

}  // namespace
}  // namespace adjoin
