#include "adjoin/search/halving.h"

#include <gtest/gtest.h>

namespace adjoin::search {
namespace {

TEST(HalvingTest, ComparesAtPowersOfTheFactorBeforeTheEnd) {
  EXPECT_EQ((Halving{3, 9}.rungs()), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ((Halving{2, 10}.rungs()), (std::vector<int64_t>{1, 2, 5}));
  EXPECT_TRUE((Halving{3, 2}.rungs().empty()));
  EXPECT_TRUE((Halving{0, 100}.rungs().empty()));
}

TEST(HalvingTest, OnlyTheBestThirdGoesOn) {
  const Halving halving{3, 9};
  EXPECT_FALSE(halving.is_over(3, 0.9, {0.1, 0.2}));
  EXPECT_TRUE(halving.is_over(3, 0.15, {0.1, 0.2}));
  EXPECT_FALSE(halving.is_over(3, 0.5, {0.1, 0.2, 0.3, 0.4, 0.9}));  // second of six
  EXPECT_TRUE(halving.is_over(3, 0.35, {0.1, 0.2, 0.3, 0.4, 0.9}));  // third of six
}

TEST(HalvingTest, WhereNothingIsKnownOrNothingIsComparedAllGoOn) {
  const Halving halving{3, 9};
  EXPECT_FALSE(halving.is_over(1, 0, {1}));
  EXPECT_FALSE(halving.is_over(2, 0, {1, 1, 1, 1}));
  EXPECT_FALSE(halving.is_over(9, 0, {1, 1, 1, 1}));
  EXPECT_FALSE((Halving{0, 9}.is_over(3, 0, {1, 1, 1, 1})));
}

}  // namespace
}  // namespace adjoin::search
