#include "adjoin/core/progress_line.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "adjoin/core/text.h"
#include "support/expect_error.h"

namespace adjoin {
namespace {

TEST(ShortDurationTest, HasTheUnitsItsSizeAsksFor) {
  const std::pair<double, const char*> durations[] = {
      {0, "0.0 s"},      {5.34, "5.3 s"},     {9.94, "9.9 s"},     {9.96, "10 s"},
      {59.4, "59 s"},    {59.6, "1:00"},      {754, "12:34"},      {3599.7, "1:00:00"},
      {5025, "1:23:45"}, {90000, "25:00:00"}, {172800, "2 d 0 h"}, {1e6, "11 d 13 h"},
      {-3, "0.0 s"},     {1e300, "?"},        {std::nan(""), "?"},
  };
  for (const auto& [seconds, text] : durations) EXPECT_EQ(short_duration(seconds), text);
}

ProgressState epoch() {
  return {"epoch 3/10", 0.455, "loss 1.234  acc 56.7 %  1234 img/s", 12.0, 5025.0};
}

TEST(BarLineTest, ShowsEverythingWhereThereIsRoom) {
  EXPECT_EQ(bar_line(epoch(), 200, true),
            "epoch 3/10 ━━━━━━━━━━━━━╸────────────────  45 %  loss 1.234  acc 56.7 %  1234 img/s  "
            "12 s left, run 1:23:45 left");
}

TEST(BarLineTest, IsAsciiWhereTheTerminalIs) {
  EXPECT_EQ(bar_line(epoch(), 200, false),
            "epoch 3/10 [=============>................]  45 %  loss 1.234  acc 56.7 %  1234 img/s"
            "  12 s left, run 1:23:45 left");
}

TEST(BarLineTest, GivesUpItsPartsOneByOneAsTheScreenNarrows) {
  const std::pair<size_t, const char*> screens[] = {
      {101,
       "epoch 3/10 ━━━━━━━━──────────  45 %  loss 1.234  acc 56.7 %  1234 img/s  12 s left, run "
       "1:23:45 left"},
      {85, "epoch 3/10 ━━━━━───────  45 %  loss 1.234  acc 56.7 %  1234 img/s  run 1:23:45 left"},
      {79, "epoch 3/10 ━━━╸────  45 %  loss 1.234  acc 56.7 %  1234 img/s  run 1:23:45 left"},
      {78, "epoch 3/10  45 %  loss 1.234  acc 56.7 %  1234 img/s  run 1:23:45 left"},
      {60, "epoch 3/10  45 %  loss 1.234  acc 56.7 %  1234 img/s"},
      {51, "epoch 3/10  45 %  loss 1.234  acc 56.7 %"},
      {29, "epoch 3/10  45 %  loss 1.234"},
      {27, "epoch 3/10  45 %  loss 1.2…"},
      {5, "epoc…"},
      {1, "…"},
      {0, ""},
  };
  for (const auto& [width, text] : screens) EXPECT_EQ(bar_line(epoch(), width, true), text);
}

TEST(BarLineTest, StartsFromTheLayoutItIsGiven) {
  const BarLayout layout = bar_layout(epoch(), 79, true);
  EXPECT_EQ(bar_line(epoch(), 200, true, layout), bar_line(epoch(), 79, true));
  EXPECT_EQ(bar_layout(epoch(), 200, true, layout), layout);
  EXPECT_GT(bar_layout(epoch(), 20, true, layout), layout);
  EXPECT_EQ(bar_layout(epoch(), 20, true, 1000), bar_layout(epoch(), 20, true));
}

TEST(BarLineTest, ShowsWholeSeconds) {
  const auto line = [](double left) { return bar_line({"x", {}, "", left, {}}, 80, true); };
  EXPECT_EQ(line(0), "x  0 s left");
  EXPECT_EQ(line(2.1), "x  2 s left");
  EXPECT_EQ(line(59.5), "x  1:00 left");
}

TEST(BarLineTest, NeverTakesMoreColumnsThanItMay) {
  ProgressState wide = epoch();
  wide.text = "Bär 汉字 😀 loss 1.2";
  for (const bool is_utf8 : {true, false}) {
    for (const ProgressState& state : {epoch(), wide, ProgressState{}}) {
      for (size_t width = 0; width < 150; ++width) {
        const std::string line = bar_line(state, width, is_utf8);
        EXPECT_LE(columns_of(line, is_utf8), width) << line;
        EXPECT_TRUE(!is_utf8 || is_plain_text(line)) << line;
      }
    }
  }
}

TEST(BarLineTest, IsFullOnlyWhenAllIsDone) {
  const auto line = [](double fraction) {
    return bar_line({"x", fraction, "", {}, {}}, 80, false);
  };
  EXPECT_EQ(line(0), "x [>.............................]   0 %");
  EXPECT_EQ(line(0.999), "x [=============================>]  99 %");
  EXPECT_EQ(line(1), "x [==============================] 100 %");
  EXPECT_EQ(line(-1), line(0));
  EXPECT_EQ(line(7), line(1));
}

TEST(BarLineTest, HasNoBarWhereTheTotalIsUnknown) {
  EXPECT_EQ(bar_line({"scan", {}, "123 images", {}, {}}, 80, true), "scan  123 images");
}

TEST(ColumnsOfTest, CountsWhatATerminalShows) {
  EXPECT_EQ(columns_of("abc", true), 3U);
  EXPECT_EQ(columns_of("é…━", true), 3U);
  EXPECT_EQ(columns_of("汉字", true), 4U);
  EXPECT_EQ(columns_of("é", false), 2U);
}

class LocaleTest : public testing::Test {
 protected:
  LocaleTest() {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
      const char* value = std::getenv(name);
      if (value != nullptr) before_[name] = value;
      unsetenv(name);
    }
  }
  ~LocaleTest() override {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) unsetenv(name);
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }

  std::map<std::string, std::string> before_;
};

TEST_F(LocaleTest, IsUtf8WhereTheFirstVariableThatIsSetSaysSo) {
  EXPECT_FALSE(is_utf8_locale());
  setenv("LANG", "de_DE.UTF-8", 1);
  EXPECT_TRUE(is_utf8_locale());
  setenv("LC_CTYPE", "C", 1);
  EXPECT_FALSE(is_utf8_locale());
  setenv("LC_ALL", "", 1);
  EXPECT_FALSE(is_utf8_locale());
  setenv("LC_ALL", "C.utf8", 1);
  EXPECT_TRUE(is_utf8_locale());
}

}  // namespace
}  // namespace adjoin
