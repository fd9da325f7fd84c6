#include "adjoin/data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace adjoin::data {
namespace {

std::vector<Sample> epoch_of(SamplerOptions options, int64_t epoch) {
  Sampler sampler(options);
  sampler.begin(epoch);
  std::vector<Sample> all;
  for (int64_t step = 0; step < sampler.steps(); ++step) {
    const auto part = sampler.part(step);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::vector<int64_t> images_of(const std::vector<Sample>& samples) {
  std::vector<int64_t> images;
  for (const Sample& sample : samples) images.push_back(sample.image);
  return images;
}

TEST(SamplerTest, TrainingShufflesEveryEpochAnew) {
  const SamplerOptions options{60, 10, true, 1, 7};
  auto first = images_of(epoch_of(options, 0));
  EXPECT_EQ(first, images_of(epoch_of(options, 0)));
  EXPECT_NE(first, images_of(epoch_of(options, 1)));
  EXPECT_NE(first, images_of(epoch_of({60, 10, true, 1, 8}, 0)));
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  std::sort(first.begin(), first.end());
  for (int64_t i = 0; i < 60; ++i) EXPECT_EQ(first[static_cast<size_t>(i)], i);
}

TEST(SamplerTest, EveryImageIsEquallyLikelyAtEveryPlace) {
  std::map<std::pair<int64_t, int64_t>, int> counts;
  for (int64_t epoch = 0; epoch < 4000; ++epoch) {
    const auto images = images_of(epoch_of({4, 4, true, 1, 3}, epoch));
    for (int64_t p = 0; p < 4; ++p) ++counts[{p, images[static_cast<size_t>(p)]}];
  }
  ASSERT_EQ(counts.size(), 16U);
  for (const auto& [place, count] : counts) EXPECT_NEAR(count, 1000, 140);  // 5 sigma
}

TEST(SamplerTest, TrainingDropsTheIncompleteBatchAndShrinksToASmallSet) {
  EXPECT_EQ(Sampler({25, 10, true}).steps(), 2);
  EXPECT_EQ(Sampler({25, 10, false}).steps(), 3);
  EXPECT_EQ(Sampler({25, 10, false}).batch_size(2), 5);
  EXPECT_EQ(Sampler({7, 10, true}).steps(), 1);
  EXPECT_EQ(Sampler({7, 10, true}).batch_size(0), 7);
}

TEST(SamplerTest, RepeatsAnImageWithinItsBatchButNeverBesideItself) {
  for (const int64_t repeats : {2, 3, 4}) {
    SCOPED_TRACE(repeats);
    const auto samples = epoch_of({96, 24, true, repeats, 5}, 2);
    ASSERT_EQ(samples.size(), 96U);
    std::map<int64_t, std::set<int64_t>> seen;
    for (const Sample& sample : samples) {
      EXPECT_TRUE(seen[sample.image].insert(sample.repeat).second);
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), 96 / repeats);
    for (const auto& [image, of] : seen) EXPECT_EQ(static_cast<int64_t>(of.size()), repeats);
    for (size_t i = 0; i < samples.size(); i += 2) {
      EXPECT_NE(samples[i].image, samples[i + 1].image) << "mixed with itself at " << i;
    }
    for (size_t step = 0; step < 4; ++step) {
      std::set<int64_t> in_batch;
      for (size_t i = 0; i < 24; ++i) in_batch.insert(samples[step * 24 + i].image);
      EXPECT_EQ(static_cast<int64_t>(in_batch.size()), 24 / repeats);
    }
  }
}

TEST(SamplerTest, SlicesOfTheRanksMakeUpTheBatchAndKeepNeighboursTogether) {
  for (int64_t world = 1; world <= 9; ++world) {
    for (int64_t count = 0; count <= 40; ++count) {
      int64_t end = 0;
      int64_t least = count, most = 0;
      for (int64_t rank = 0; rank < world; ++rank) {
        const Slice slice = rank_slice(count, rank, world);
        EXPECT_EQ(slice.begin, end);
        end = slice.end;
        least = std::min(least, slice.end - slice.begin);
        most = std::max(most, slice.end - slice.begin);
        EXPECT_TRUE(slice.begin % 2 == 0 || count + 1 < 2 * world);
      }
      EXPECT_EQ(end, count);
      EXPECT_LE(most - least, 3) << count << " over " << world;
      EXPECT_TRUE(least >= 1 || count < world) << count << " over " << world;
    }
  }
}

TEST(SamplerTest, EvaluationSeesEveryImageOnceInOrder) {
  for (const int64_t world : {1, 2, 3, 8}) {
    for (const int64_t batch : {1, 4, 10, 100}) {
      std::multiset<int64_t> seen;
      for (int64_t rank = 0; rank < world; ++rank) {
        const auto images = images_of(epoch_of({23, batch, false, 3, 0, rank, world}, 4));
        EXPECT_TRUE(std::is_sorted(images.begin(), images.end()));
        seen.insert(images.begin(), images.end());
      }
      EXPECT_EQ(seen.size(), 23U);
      EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 23U);
    }
  }
}

TEST(SamplerTest, RanksPartsJoinedAreTheBatchOfOneProcess) {
  Sampler whole({50, 9, true, 3, 11});
  whole.begin(6);
  for (int64_t step = 0; step < whole.steps(); ++step) {
    std::vector<Sample> joined;
    for (int64_t rank = 0; rank < 3; ++rank) {
      Sampler part({50, 9, true, 3, 11, rank, 3});
      part.begin(6);
      const auto samples = part.part(step);
      joined.insert(joined.end(), samples.begin(), samples.end());
    }
    EXPECT_EQ(joined, whole.part(step));
  }
}

}  // namespace
}  // namespace adjoin::data
