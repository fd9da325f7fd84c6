#include "adjoin/core/suggest.h"

#include <gtest/gtest.h>

namespace adjoin {
namespace {

using Names = std::vector<std::string>;

TEST(EditDistanceTest, CountsInsertionsDeletionsAndReplacements) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("head", "heads"), 1U);
  EXPECT_EQ(edit_distance("heads", "head"), 1U);
  EXPECT_EQ(edit_distance("same", "same"), 0U);
}

TEST(EditDistanceTest, CountsASwapOfNeighboursOnce) {
  EXPECT_EQ(edit_distance("heasd", "heads"), 1U);
  EXPECT_EQ(edit_distance("ba", "ab"), 1U);
}

TEST(EditDistanceTest, OfAnEmptyTextIsTheLengthOfTheOther) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
}

TEST(EditDistanceTest, IsTheSameBothWays) {
  const Names words = {"", "depth", "detph", "heads", "head_dim", "dim", "a"};
  for (const std::string& a : words) {
    for (const std::string& b : words) EXPECT_EQ(edit_distance(a, b), edit_distance(b, a));
  }
}

TEST(NearestNamesTest, PutsTheNearestFirst) {
  EXPECT_EQ(nearest_names("headz", Names{"head_dim", "depth", "heads"}).front(), "heads");
  EXPECT_EQ(nearest_names("aaaabb", Names{"aaaacc", "aaaab", "aaaaab"}),
            (Names{"aaaab", "aaaaab", "aaaacc"}));
}

TEST(NearestNamesTest, FindsNamesThatHoldTheGivenOne) {
  const Names names = {"swin_base_patch4_window12_384", "swin_tiny_patch4_window7_224", "vit_tiny"};
  EXPECT_EQ(nearest_names("swin_tiny", names).front(), "swin_tiny_patch4_window7_224");
}

TEST(NearestNamesTest, GivesNoMoreThanAsked) {
  const Names names = {"aaa1", "aaa2", "aaa3", "aaa4"};
  EXPECT_EQ(nearest_names("aaa0", names, 2), (Names{"aaa1", "aaa2"}));
  EXPECT_EQ(nearest_names("aaa0", names).size(), 3U);
}

TEST(NearestNamesTest, IsEmptyWhenNothingIsNear) {
  EXPECT_EQ(nearest_names("zzzzzzzz", Names{"depth", "heads"}), Names{});
  EXPECT_EQ(nearest_names("", Names{"depth", "heads"}), Names{});
  EXPECT_EQ(nearest_names("depth", Names{}), Names{});
}

TEST(SuggestionTest, AsksForTheNearNames) {
  EXPECT_EQ(suggestion("detph", Names{"depth", "heads"}), "; did you mean depth?");
  EXPECT_EQ(suggestion("aaa0", Names{"aaa1", "aaa2"}), "; did you mean aaa1 or aaa2?");
  EXPECT_EQ(suggestion("aaa0", Names{"aaa1", "aaa2", "aaa3", "aaa4"}),
            "; did you mean aaa1, aaa2 or aaa3?");
}

TEST(SuggestionTest, ListsAllNamesWhenNoneIsNear) {
  EXPECT_EQ(suggestion("zzzzzzzz", Names{"depth", "heads"}), "; legal: depth, heads");
}

TEST(JoinTest, PutsTheSeparatorBetweenPartsOnly) {
  EXPECT_EQ(join(Names{}), "");
  EXPECT_EQ(join(Names{"a"}), "a");
  EXPECT_EQ(join(Names{"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(join(Names{"a", "b"}, "|"), "a|b");
}

TEST(JoinTest, KeepsEmptyPartsApart) { EXPECT_EQ(join(Names{"", "b"}, "|"), "|b"); }

}  // namespace
}  // namespace adjoin
