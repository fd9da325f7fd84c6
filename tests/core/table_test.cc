#include "adjoin/core/table.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace adjoin {
namespace {

TEST(TableTest, SetsWordsLeftAndNumbersRight) {
  Table table({"name", ">count"});
  table.add({"a", "5"});
  table.add({"longer", "1234567"});
  EXPECT_EQ(table.text(),
            "name      count\n"
            "------  -------\n"
            "a             5\n"
            "longer  1234567\n");
}

TEST(TableTest, IsOnlyItsHeadingWhenItHasNoRows) {
  EXPECT_EQ(Table({"a", ">bc"}).text(), "a  bc\n-  --\n");
}

TEST(TableTest, LeavesNoBlanksAtTheEndOfALine) {
  Table table({"a", "long heading"});
  table.add({"b", "c"});
  EXPECT_EQ(table.text(), "a  long heading\n-  ------------\nb  c\n");
}

TEST(TableTest, CountsAUtf8CharacterAsOnePlace) {
  Table table({"word", ">n"});
  table.add({"größe", "1"});
  table.add({"size.", "2"});
  EXPECT_EQ(table.text(),
            "word   n\n"
            "-----  -\n"
            "größe  1\n"
            "size.  2\n");
}

TEST(WithCommasTest, GroupsThreeDigitsFromTheRight) {
  EXPECT_EQ(with_commas(5717416), "5,717,416");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(100000), "100,000");
}

TEST(WithCommasTest, LeavesShortNumbersAlone) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
}

TEST(WithCommasTest, PutsNoCommaAfterAMinus) {
  EXPECT_EQ(with_commas(-999), "-999");
  EXPECT_EQ(with_commas(-123456), "-123,456");
  EXPECT_EQ(with_commas(INT64_MIN), "-9,223,372,036,854,775,808");
}

TEST(ShortCountTest, KeepsThreeDigits) {
  EXPECT_EQ(short_count(1253683200), "1.25 G");
  EXPECT_EQ(short_count(17563828224), "17.6 G");
  EXPECT_EQ(short_count(291e6), "291 M");
}

TEST(ShortCountTest, WritesWholeNumbersBelowAThousandAsTheyAre) {
  EXPECT_EQ(short_count(0), "0");
  EXPECT_EQ(short_count(7), "7");
  EXPECT_EQ(short_count(999), "999");
}

TEST(ShortCountTest, StepsToTheNextUnitWhereRoundingReachesIt) {
  EXPECT_EQ(short_count(999.4), "999");
  EXPECT_EQ(short_count(999.6), "1.00 k");
  EXPECT_EQ(short_count(999600), "1.00 M");
  EXPECT_EQ(short_count(9.996), "10.0");
}

TEST(ShortCountTest, StaysInTheLargestUnit) { EXPECT_EQ(short_count(5e18), "5000 P"); }

TEST(ShortBytesTest, CountsInStepsOf1024) {
  EXPECT_EQ(short_bytes(22869664), "21.8 MiB");
  EXPECT_EQ(short_bytes(1024), "1.00 KiB");
  EXPECT_EQ(short_bytes(100), "100 B");
  EXPECT_EQ(short_bytes(3.0 * (int64_t{1} << 40)), "3.00 TiB");
}

}  // namespace
}  // namespace adjoin
