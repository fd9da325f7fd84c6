#include "adjoin/data/dataset.h"

#include <algorithm>
#include <limits>
#include <set>
#include <thread>

#include "data/read_split.h"
#include "support/expect_error.h"

namespace adjoin::data {
namespace {

void expect_refused(ErrorKind kind, const DataOptions& options,
                    std::initializer_list<std::string_view> parts) {
  expect_error(kind, parts, [&] { open_data(options); });
}

TEST(DatasetTest, MistypedKindsGetASuggestion) {
  expect_refused(ErrorKind::kUsage, {.data = "cifar:/data"}, {"\"cifar\"; did you mean cifar10?"});
  expect_refused(ErrorKind::kUsage, {.data = "fashionmnist"}, {"did you mean fashion-mnist?"});
  expect_refused(ErrorKind::kUsage, {.data = "mnist"}, {"did you mean fashion-mnist?"});
  expect_refused(ErrorKind::kUsage, {.data = "sythetic:3x8x8x2"}, {"did you mean synthetic?"});
  expect_refused(ErrorKind::kUsage, {.data = "https://example.org/set"},
                 {"https:", "no such kind of data", "cifar10:DIR"});
}

TEST(DatasetTest, PathsToNothingListWhatIsLegal) {
  expect_refused(ErrorKind::kIo, {.data = "/no/such/folder"},
                 {"/no/such/folder: there is no such folder", "fashion-mnist", "idx:DIR",
                  "cifar10:DIR", "folder:DIR", "tar:PATH", "synthetic:CxHxWxCLASSES"});
  expect_refused(ErrorKind::kIo, {.data = "/no/such:folder"}, {"no such folder"});
  expect_refused(ErrorKind::kIo, {.data = "folder:/no/such/folder"}, {"no such folder"});
  expect_refused(ErrorKind::kIo, {.data = "tar:/no/such.tar"}, {"/no/such.tar"});
  expect_refused(ErrorKind::kUsage, {.data = ""}, {"idx:DIR"});
  expect_refused(ErrorKind::kUsage, {.data = "idx:"}, {"idx:DIR"});
}

TEST(DatasetTest, PlainPathsOfFilesAreRefused) {
  const TempFolder folder;
  expect_refused(ErrorKind::kData, {.data = folder.write("a.txt", "x")}, {"is no folder"});
  expect_refused(ErrorKind::kData, {.data = folder.write("a.tar", "x")},
                 {"tar:" + folder / "a.tar"});
}

TEST(DatasetTest, OptionsOutOfRangeAreRefused) {
  const std::string data = "synthetic:1x4x4x2";
  for (const double fraction : {-0.1, 1.0, 7.0, std::numeric_limits<double>::quiet_NaN()}) {
    expect_refused(ErrorKind::kUsage, {.data = data, .val_fraction = fraction},
                   {"--val-fraction", "below 1"});
  }
  expect_refused(ErrorKind::kUsage, {.data = data, .limit_train = -1}, {"--limit-train -1"});
  expect_refused(ErrorKind::kUsage, {.data = data, .limit_val = -5}, {"--limit-val -5"});
}

TEST(DatasetTest, AFractionOfTrainIsForSetsWithoutTheirOwnVal) {
  expect_refused(ErrorKind::kUsage, {.data = "synthetic:1x4x4x2", .val_fraction = 0.1},
                 {"--val-fraction 0.1: synthetic:1x4x4x2 has validation images of its own"});
  const TempFolder folder;
  for (int i = 0; i < 10; ++i) {
    write_tree(folder,
               {"train/a/" + std::to_string(i) + ".jpg", "train/b/" + std::to_string(i) + ".jpg"});
  }
  const DataSets sets = open_data({.data = folder.path(), .val_fraction = 0.2});
  EXPECT_EQ(sets.train->size(), 16);
  EXPECT_EQ(sets.val.labels, (std::vector<int64_t>{0, 0, 1, 1}));
  const DataSets val_only =
      open_data({.data = folder.path(), .val_fraction = 0.2, .is_train_needed = false});
  EXPECT_FALSE(val_only.train);
  EXPECT_EQ(all_bytes(val_only.val), all_bytes(sets.val));
}

TEST(DatasetTest, LimitsDoNotChangeWhatIsSetAside) {
  const TempFolder folder;
  for (int i = 0; i < 20; ++i) write_tree(folder, {"a/" + std::to_string(i) + ".jpg"});
  const DataOptions options = {.data = folder.path(), .val_fraction = 0.25};
  const DataSets all = open_data(options);
  DataOptions few = options;
  few.limit_train = 3;
  const DataSets limited = open_data(few);
  EXPECT_EQ(limited.train->size(), 3);
  EXPECT_EQ(all_bytes(limited.val), all_bytes(all.val));
  const auto train = all_bytes(*all.train);
  for (const std::string& image : all_bytes(*limited.train)) {
    EXPECT_TRUE(std::find(train.begin(), train.end(), image) != train.end());
  }
}

TEST(DatasetTest, WhatASearchSetsAsideIsNoneOfTheValidationImages) {
  const TempFolder folder;
  for (int i = 0; i < 20; ++i) write_tree(folder, {"a/" + std::to_string(i) + ".jpg"});
  const DataOptions options = {.data = folder.path(), .val_fraction = 0.25};
  const auto val = all_bytes(open_data(options).val);
  DataOptions searching = options;
  searching.set_aside = 0.25;
  const DataSets sets = open_data(searching);
  EXPECT_EQ(sets.train->size() + sets.val.size(), 15);
  for (const auto& part : {all_bytes(*sets.train), all_bytes(sets.val)}) {
    for (const std::string& image : part) {
      EXPECT_TRUE(std::find(val.begin(), val.end(), image) == val.end());
    }
  }
}

TEST(DatasetTest, LimitsHoldForBothSplits) {
  const DataSets sets = open_data({.data = "synthetic:1x4x4x5", .limit_train = 15, .limit_val = 7});
  EXPECT_EQ(sets.train->size(), 15);
  EXPECT_EQ(sets.val.size(), 7);
  EXPECT_EQ(std::count(sets.train->labels.begin(), sets.train->labels.end(), 4), 3);
}

TEST(DatasetTest, AnyThreadMayRead) {
  const DataSets sets = open_data({.data = "synthetic:3x16x16x5", .limit_train = 64});
  std::vector<std::vector<uint8_t>> expected;
  for (int64_t i = 0; i < 64; ++i) expected.push_back(pixels_of(*sets.train, i));
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 64; ++i) {
        wrong[t] += pixels_of(*sets.train, i) == expected[static_cast<size_t>(i)] ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

}  // namespace
}  // namespace adjoin::data
