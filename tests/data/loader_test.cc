#include "adjoin/data/loader.h"

#include <atomic>
#include <thread>

#include "adjoin/data/transform.h"
#include "data/make_split.h"
#include "support/expect_error.h"
#include "support/seeded_test.h"

namespace adjoin::data {
namespace {

constexpr int64_t kPixels = 12;

/// Everything on. Padding makes a set of small images resident, random-resized-crop streams it.
LoaderOptions train_options(CropMode mode) {
  LoaderOptions options;
  options.batch_size = 9;
  options.img_size = kPixels;
  options.preprocessing = {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
  options.augment.train_crop_mode = mode;
  options.augment.reprob = 0.5;
  options.augment.recount = 2;
  options.augment.mixup = 0.8;
  options.augment.cutmix = 1;
  options.seed = 5;
  return options;
}

LoaderOptions eval_options(int64_t img_size) {
  LoaderOptions options = train_options(CropMode::kAuto);
  options.is_training = false;
  options.img_size = img_size;
  options.preprocessing.crop_pct = 0.9;
  return options;
}

std::vector<Batch> rest_of_epoch(Loader& loader, int64_t epoch, int64_t step = 0) {
  loader.begin(epoch, step);
  std::vector<Batch> batches;
  for (; step < loader.steps(); ++step) batches.push_back(loader.next());
  return batches;
}

std::vector<Batch> epoch_of(const Split& split, const LoaderOptions& options, int64_t epoch = 1) {
  Loader loader(split, options);
  return rest_of_epoch(loader, epoch);
}

void expect_same(const Batch& a, const Batch& b) {
  EXPECT_TRUE(torch::equal(a.images, b.images));
  EXPECT_TRUE(torch::equal(a.labels, b.labels));
  ASSERT_EQ(a.targets.defined(), b.targets.defined());
  EXPECT_TRUE(!a.targets.defined() || torch::equal(a.targets, b.targets));
  EXPECT_EQ(a.unreadable, b.unreadable);
}

void expect_same(const std::vector<Batch>& a, const std::vector<Batch>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(i);
    expect_same(a[i], b[i]);
  }
}

class LoaderTest : public SeededTest, public testing::WithParamInterface<CropMode> {
 protected:
  LoaderOptions options() const { return train_options(GetParam()); }
};

TEST_P(LoaderTest, GivesNormalisedImagesWithTheirTargets) {
  const auto batches = epoch_of(make_split(31, kPixels), options());
  ASSERT_EQ(batches.size(), 3U);
  for (const Batch& batch : batches) {
    EXPECT_EQ(batch.images.sizes(), (std::vector<int64_t>{9, 3, kPixels, kPixels}));
    EXPECT_EQ(batch.images.scalar_type(), torch::kFloat32);
    EXPECT_EQ(batch.targets.sizes(), (std::vector<int64_t>{9, 5}));
    EXPECT_TRUE(torch::allclose(batch.targets.sum(1), torch::ones({9})));
    EXPECT_TRUE(batch.images.isfinite().all().item<bool>());
    EXPECT_FALSE(batch.images.requires_grad());
  }
  EXPECT_FALSE(torch::equal(batches[0].images, batches[1].images));
}

TEST_P(LoaderTest, BatchesAreTheSameForAnyNumberOfWorkers) {
  const Split split = make_split(40, kPixels, {3, 4, 17});
  LoaderOptions with = options();
  with.workers = 0;
  const auto wanted = epoch_of(split, with);
  for (const int64_t workers : {1, 2, 5}) {
    SCOPED_TRACE(workers);
    with.workers = workers;
    expect_same(epoch_of(split, with), wanted);
  }
}

TEST_P(LoaderTest, PartsOfTheProcessesJoinedAreTheBatchOfOne) {
  const Split split = make_split(40, kPixels, {3, 4, 17});
  for (const int64_t repeats : {1, 3}) {
    LoaderOptions with = options();
    with.augment.aug_repeats = repeats;
    const auto wanted = epoch_of(split, with);
    for (const int64_t world : {2, 3, 5}) {
      SCOPED_TRACE(world);
      std::vector<std::vector<Batch>> parts;
      with.world = world;
      for (with.rank = 0; with.rank < world; ++with.rank) parts.push_back(epoch_of(split, with));
      for (size_t step = 0; step < wanted.size(); ++step) {
        std::vector<torch::Tensor> images, labels, targets;
        for (const auto& part : parts) {
          images.push_back(part[step].images);
          labels.push_back(part[step].labels);
          targets.push_back(part[step].targets);
        }
        EXPECT_TRUE(torch::equal(torch::cat(images), wanted[step].images));
        EXPECT_TRUE(torch::equal(torch::cat(labels), wanted[step].labels));
        EXPECT_TRUE(torch::equal(torch::cat(targets), wanted[step].targets));
      }
    }
    with.world = 1;
    with.rank = 0;
  }
}

TEST_P(LoaderTest, BeginningInTheMiddleGivesTheTailOfTheEpoch) {
  const Split split = make_split(50, kPixels);
  Loader loader(split, options());
  auto whole = rest_of_epoch(loader, 2);
  ASSERT_EQ(whole.size(), 5U);
  rest_of_epoch(loader, 3);
  loader.begin(0);
  loader.next();  // what was read ahead of this is dropped
  const auto tail = rest_of_epoch(loader, 2, 3);
  expect_same(tail, {whole.begin() + 3, whole.end()});
}

TEST_P(LoaderTest, EpochsDifferAndSeedsDiffer) {
  const Split split = make_split(18, kPixels);
  const auto batches = epoch_of(split, options(), 0);
  EXPECT_FALSE(torch::equal(epoch_of(split, options(), 1)[0].images, batches[0].images));
  LoaderOptions other = options();
  other.seed = 6;
  EXPECT_FALSE(torch::equal(epoch_of(split, other, 0)[0].images, batches[0].images));
}

TEST_P(LoaderTest, RepeatsOfAnImageAreVariedEachInItsWay) {
  LoaderOptions with = options();
  with.augment.mixup = with.augment.cutmix = with.augment.reprob = 0;
  with.augment.aug_repeats = 8;
  with.batch_size = 8;
  const auto batch = epoch_of(make_split(8, kPixels), with)[0];  // one image, eight times
  EXPECT_EQ(batch.labels.min().item<int64_t>(), batch.labels.max().item<int64_t>());
  const auto flat = batch.images.flatten(1);
  EXPECT_GT((flat.narrow(0, 1, 7) - flat[0]).abs().sum(1).count_nonzero().item<int64_t>(), 4);
}

TEST_P(LoaderTest, ASetSmallerThanTheBatchIsOneBatch) {
  Loader loader(make_split(4, kPixels), options());
  EXPECT_EQ(loader.steps(), 1);
  EXPECT_EQ(loader.batch_size(0), 4);
  EXPECT_EQ(rest_of_epoch(loader, 0)[0].images.size(0), 4);
}

TEST_P(LoaderTest, ABrokenImageIsReplacedByTheNextAndListedOnce) {
  // One batch of all images: every broken one is met in the first epoch.
  LoaderOptions with = options();
  with.batch_size = 10;
  Loader loader(make_split(10, kPixels, {3, 4, 9}), with);
  const Batch first = rest_of_epoch(loader, 0)[0];
  auto listed = first.unreadable;
  std::sort(listed.begin(), listed.end());
  EXPECT_EQ(listed, (std::vector<int64_t>{3, 4, 9}));
  EXPECT_EQ(loader.unreadable(), listed);
  // Labels i % 5 of 0..9 with 5 for both 3 and 4, and 0 for 9: four zeros, and no four but 4's.
  EXPECT_EQ((first.labels == 0).sum().item<int64_t>(), 5);
  EXPECT_EQ((first.labels == 3).sum().item<int64_t>(), 1);
  EXPECT_EQ((first.labels == 4).sum().item<int64_t>(), 0);
  EXPECT_TRUE(rest_of_epoch(loader, 1)[0].unreadable.empty());
  EXPECT_TRUE(rest_of_epoch(loader, 0)[0].unreadable.empty());
}

TEST_P(LoaderTest, BrokenImagesAreListedInTheBatchThatMeetsThem) {
  LoaderOptions with = options();
  with.augment.mixup = with.augment.cutmix = 0;
  const Split split = make_split(45, kPixels, {7, 30});
  Loader loader(split, with);
  loader.begin(0);
  std::vector<int64_t> met;
  for (int64_t step = 0; step < loader.steps(); ++step) {
    const Batch batch = loader.next();
    met.insert(met.end(), batch.unreadable.begin(), batch.unreadable.end());
    auto sorted = met;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(loader.unreadable(), sorted);  // nothing of the batches read ahead
  }
  EXPECT_EQ(loader.unreadable(), (std::vector<int64_t>{7, 30}));
  Loader resumed(split, with);
  resumed.set_unreadable({30});
  std::vector<int64_t> listed;
  for (const Batch& batch : rest_of_epoch(resumed, 0)) {
    listed.insert(listed.end(), batch.unreadable.begin(), batch.unreadable.end());
  }
  EXPECT_EQ(listed, std::vector<int64_t>{7});
  EXPECT_EQ(resumed.unreadable(), (std::vector<int64_t>{7, 30}));
}

TEST_P(LoaderTest, SaysWhyWhenNoImageCanBeRead) {
  std::set<int64_t> all;
  for (int64_t i = 0; i < 120; ++i) all.insert(i);
  Loader loader(make_split(120, kPixels, all), options());
  loader.begin(0);
  expect_error(ErrorKind::kData, {"made: 100 images in a row", "because:"}, [&] { loader.next(); });
}

TEST_P(LoaderTest, AnErrorOfAnotherKindReachesTheCaller) {
  for (const int64_t workers : {0, 2}) {
    Split split = make_split(40, kPixels);
    split.read = [read = split.read](int64_t image) {
      if (image == 11) throw std::out_of_range("eleven");
      return read(image);
    };
    LoaderOptions with = options();
    with.workers = workers;
    Loader loader(split, with);
    EXPECT_THROW(rest_of_epoch(loader, 0), std::out_of_range);
  }
}

INSTANTIATE_TEST_SUITE_P(Sources, LoaderTest,
                         testing::Values(CropMode::kPad, CropMode::kRandomResized),
                         [](const auto& p) {
                           return p.param == CropMode::kPad ? "Resident" : "Streaming";
                         });

class EvalLoaderTest : public SeededTest, public testing::WithParamInterface<int64_t> {};

TEST_P(EvalLoaderTest, ImagesAreThoseOfTheEvaluationTransform) {
  const Split split = make_split(20, kPixels);
  const LoaderOptions options = eval_options(GetParam());
  const auto batches = epoch_of(split, options);
  ASSERT_EQ(batches.size(), 3U);
  EXPECT_EQ(batches[2].images.size(0), 2);
  for (int64_t i = 0; i < 20; ++i) {
    const auto wanted =
        eval_input(random_image(i, kPixels, 3), options.preprocessing, GetParam(), "made");
    const Batch& batch = batches[static_cast<size_t>(i / 9)];
    EXPECT_TRUE(torch::equal(batch.images[i % 9], wanted)) << i;
    EXPECT_EQ(batch.labels[i % 9].item<int64_t>(), i % 5);
    EXPECT_FALSE(batch.targets.defined());
  }
}

TEST_P(EvalLoaderTest, EveryImageIsSeenOnceOverAllProcesses) {
  Split split = make_split(11, kPixels);
  for (int64_t i = 0; i < 11; ++i) {
    split.classes.push_back("more");
    split.labels[static_cast<size_t>(i)] = i;
  }
  for (const int64_t world : {1, 2, 3, 12}) {
    std::vector<torch::Tensor> labels;
    for (int64_t rank = 0; rank < world; ++rank) {
      LoaderOptions options = eval_options(GetParam());
      options.batch_size = 4;
      options.rank = rank;
      options.world = world;
      for (const Batch& batch : epoch_of(split, options)) {
        EXPECT_EQ(batch.images.size(0), batch.labels.size(0));
        EXPECT_EQ(batch.images.dim(), 4);
        labels.push_back(batch.labels);
      }
    }
    const auto seen = std::get<0>(torch::cat(labels).sort());
    EXPECT_TRUE(torch::equal(seen, torch::arange(11, torch::kInt64))) << world;
  }
}

TEST_P(EvalLoaderTest, ABrokenImageIsBlackAndHasNoLabel) {
  const LoaderOptions options = eval_options(GetParam());
  Loader loader(make_split(9, kPixels, {2, 7}), options);
  const Batch batch = rest_of_epoch(loader, 0)[0];
  EXPECT_EQ(batch.unreadable, (std::vector<int64_t>{2, 7}));
  for (int64_t i = 0; i < 9; ++i) {
    const bool is_broken = i == 2 || i == 7;
    EXPECT_EQ(batch.labels[i].item<int64_t>(), is_broken ? -1 : i % 5);
    const auto black = -torch::tensor(options.preprocessing.mean, torch::kFloat32) /
                       torch::tensor(options.preprocessing.std, torch::kFloat32);
    EXPECT_EQ(torch::allclose(batch.images[i], black.view({3, 1, 1}).expand_as(batch.images[i])),
              is_broken);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, EvalLoaderTest, testing::Values(16, 72),
                         [](const auto& p) { return p.param == 16 ? "Resident" : "Streaming"; });

/// Counts reads, and never lets them be slow for long.
struct CountedReads {
  explicit CountedReads(Split& split) {
    split.read = [this, read = split.read](int64_t image) {
      ++begun;
      return read(image);
    };
  }
  std::atomic<int64_t> begun = 0;
};

TEST(LoaderThreadsTest, ReadsAheadByTwoBatchesAndNoMore) {
  Split split = make_split(400, kPixels);
  CountedReads reads(split);
  LoaderOptions options = train_options(CropMode::kRandomResized);
  options.batch_size = 10;
  options.workers = 3;
  Loader loader(split, options);
  loader.begin(0);
  for (int64_t given = 0; given < 10; ++given) {
    while (reads.begun < 10 * (given + 2)) std::this_thread::yield();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // time enough to go too far
    EXPECT_EQ(reads.begun, 10 * (given + 2));
    loader.next();
  }
}

TEST(LoaderThreadsTest, ReadsFurtherAheadWhereBatchesAreSmallerThanTheThreadsAreMany) {
  Split split = make_split(400, kPixels);
  CountedReads reads(split);
  LoaderOptions options = train_options(CropMode::kRandomResized);
  options.batch_size = 1;
  options.workers = 5;
  Loader loader(split, options);
  loader.begin(0);
  while (reads.begun < 10) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_EQ(reads.begun, 10);
}

TEST(LoaderThreadsTest, EndsInTheMiddleOfAnEpoch) {
  Split split = make_split(4000, kPixels);
  CountedReads reads(split);
  for (int64_t given = 0; given < 4; ++given) {
    LoaderOptions options = train_options(CropMode::kRandomResized);
    options.batch_size = 1000;
    Loader loader(split, options);
    loader.begin(0);
    for (int64_t i = 0; i < given; ++i) loader.next();
  }
  EXPECT_LT(reads.begun, 4 * 4000);
}

TEST(LoaderThreadsTest, DropsAndBeginsAgainAtAnyMoment) {
  const Split split = make_split(60, kPixels, {5, 6, 50});
  LoaderOptions options = train_options(CropMode::kRandomResized);
  options.workers = 0;
  Loader slow(split, options);
  options.workers = 3;
  Loader loader(split, options);
  Rng rng(1);
  for (int round = 0; round < 40; ++round) {
    const int64_t epoch = rng.below(5);
    const int64_t step = rng.below(loader.steps());
    loader.begin(epoch, step);
    slow.begin(epoch, step);
    for (int64_t i = rng.below(loader.steps() - step + 1); i > 0; --i) {
      expect_same(loader.next(), slow.next());
    }
  }
  EXPECT_EQ(loader.unreadable(), slow.unreadable());
}

TEST(LoaderErrorsTest, RefusesWhatCannotBe) {
  const auto refuse = [](ErrorKind kind, std::initializer_list<std::string_view> parts,
                         const Split& split, const LoaderOptions& options) {
    expect_error(kind, parts, [&] { Loader loader(split, options); });
  };
  const LoaderOptions options = train_options(CropMode::kPad);
  refuse(ErrorKind::kData, {"made", "no image"}, make_split(0, kPixels), options);
  Split split = make_split(8, kPixels);
  split.labels[3] = 5;
  refuse(ErrorKind::kData, {"label 5", "0 to 4"}, split, options);
  LoaderOptions wrong = options;
  wrong.batch_size = 0;
  refuse(ErrorKind::kConfig, {"batch_size 0"}, make_split(8, kPixels), wrong);
  wrong = options;
  wrong.world = 3;
  refuse(ErrorKind::kConfig, {"4 images for 3 processes", "5 or more", "pairs"},
         make_split(4, kPixels), wrong);
  wrong.augment.mixup = wrong.augment.cutmix = 0;
  refuse(ErrorKind::kConfig, {"2 images for 3 processes", "3 or more"}, make_split(2, kPixels),
         wrong);
}

TEST(LoaderErrorsTest, RefusesABatchOutsideAnEpoch) {
  Loader loader(make_split(20, kPixels), train_options(CropMode::kPad));
  expect_error(ErrorKind::kInternal, {"outside an epoch"}, [&] { loader.next(); });
  loader.begin(0, 2);
  expect_error(ErrorKind::kInternal, {"outside an epoch"}, [&] { loader.next(); });
  expect_error(ErrorKind::kInternal, {"step 3"}, [&] { loader.begin(0, 3); });
}

}  // namespace
}  // namespace adjoin::data
