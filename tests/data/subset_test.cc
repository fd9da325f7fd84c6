#include "adjoin/data/subset.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "data/read_split.h"
#include "support/expect_error.h"

namespace adjoin::data {
namespace {

/// A split whose class k has sizes[k] images, mixed; `describe` gives the number of an image.
Split split_of(const std::vector<int64_t>& sizes) {
  Split split;
  split.name = "set";
  for (size_t k = 0; k < sizes.size(); ++k) split.classes.push_back(std::to_string(k));
  const int64_t most = *std::max_element(sizes.begin(), sizes.end());
  for (int64_t i = 0; i < most; ++i) {
    for (size_t k = 0; k < sizes.size(); ++k) {
      if (i < sizes[k]) split.labels.push_back(static_cast<int64_t>(k));
    }
  }
  split.describe = [](int64_t image) { return std::to_string(image); };
  split.read = [](int64_t image) -> Stored { return Image{image, 1, 1, {}}; };
  return split;
}

std::vector<int64_t> numbers(const Split& split) {
  std::vector<int64_t> result;
  for (int64_t i = 0; i < split.size(); ++i) result.push_back(std::stoll(split.describe(i)));
  return result;
}

std::vector<int64_t> counts(const Split& split) {
  std::vector<int64_t> result(split.classes.size());
  for (const int64_t label : split.labels) ++result[static_cast<size_t>(label)];
  return result;
}

bool is_part(const Split& part, const Split& whole) {
  const auto a = numbers(part);
  const auto b = numbers(whole);
  return std::includes(b.begin(), b.end(), a.begin(), a.end());
}

TEST(LimitTest, ImagesAreSpreadEvenlyOverTheClasses) {
  const Split split = split_of({50, 50, 50, 50});
  for (int64_t count = 1; count <= 200; ++count) {
    const auto [least, most] = std::ranges::minmax(counts(limited(split, count)));
    EXPECT_EQ(limited(split, count).size(), count);
    EXPECT_LE(most - least, 1) << count;
  }
}

TEST(LimitTest, SmallClassesGiveAllTheyHave) {
  EXPECT_EQ(counts(limited(split_of({1, 100, 3}), 14)), (std::vector<int64_t>{1, 10, 3}));
}

TEST(LimitTest, LargerLimitsContainSmallerOnes) {
  const Split split = split_of({7, 40, 1, 13});
  for (int64_t count = 1; count < 61; ++count) {
    EXPECT_TRUE(is_part(limited(split, count), limited(split, count + 1))) << count;
  }
}

TEST(LimitTest, ZeroAndTooManyAreAll) {
  const Split split = split_of({3, 4});
  for (const int64_t count : {0, 7, 8, 1000}) EXPECT_EQ(limited(split, count).size(), 7);
}

TEST(LimitTest, ImagesKeepTheirLabelsPixelsAndOrder) {
  const Split split = split_of({30, 30, 30});
  const Split part = limited(split, 20);
  const std::vector<int64_t> chosen = numbers(part);
  EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
  for (int64_t i = 0; i < part.size(); ++i) {
    const int64_t image = chosen[static_cast<size_t>(i)];
    EXPECT_EQ(part.labels[static_cast<size_t>(i)], split.labels[static_cast<size_t>(image)]);
    EXPECT_EQ(std::get<Image>(part.read(i)).width, image);
  }
  EXPECT_EQ(part.classes, split.classes);
}

/// Neither the first nor every n-th.
TEST(LimitTest, TheChoiceFollowsNoOrder) {
  const std::vector<int64_t> chosen = numbers(limited(split_of({1000}), 100));
  EXPECT_NEAR(std::accumulate(chosen.begin(), chosen.end(), 0.0) / 100, 500, 100);
  std::set<int64_t> steps;
  for (size_t i = 1; i < chosen.size(); ++i) steps.insert(chosen[i] - chosen[i - 1]);
  EXPECT_GT(steps.size(), 10U);
}

TEST(ValFractionTest, DividesEveryClassInProportion) {
  const Split split = split_of({100, 7, 2, 1, 1000});
  const auto [train, val] = divided(split, 0.1);
  EXPECT_EQ(counts(val), (std::vector<int64_t>{10, 1, 1, 0, 100}));
  EXPECT_EQ(counts(train), (std::vector<int64_t>{90, 6, 1, 1, 900}));
  EXPECT_EQ(counts(divided(split, 0.999).first), (std::vector<int64_t>{1, 1, 1, 1, 1}));
}

TEST(ValFractionTest, EveryImageIsInOnePart) {
  const Split split = split_of({100, 7, 2, 1, 30});
  for (const double fraction : {0.001, 0.1, 0.5, 0.77}) {
    const auto [train, val] = divided(split, fraction);
    std::vector<int64_t> both = numbers(train);
    const std::vector<int64_t> set_aside = numbers(val);
    both.insert(both.end(), set_aside.begin(), set_aside.end());
    std::sort(both.begin(), both.end());
    std::vector<int64_t> all(static_cast<size_t>(split.size()));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(both, all);
  }
}

TEST(ValFractionTest, LargerFractionsContainSmallerOnes) {
  const Split split = split_of({50, 7, 31});
  for (double fraction = 0.05; fraction < 0.9; fraction += 0.05) {
    EXPECT_TRUE(is_part(divided(split, fraction).second, divided(split, fraction + 0.05).second));
  }
}

TEST(ValFractionTest, ClassesOfOneImageLeaveNothingToSetAside) {
  expect_error(ErrorKind::kData, {"set: no image can be set aside"}, [] {
    divided(split_of({1, 1}), 0.5);
  });
}

}  // namespace
}  // namespace adjoin::data
