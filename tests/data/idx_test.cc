#include "adjoin/data/idx.h"

#include "data/make_idx.h"
#include "data/read_split.h"
#include "io/make_safetensors.h"
#include "support/expect_error.h"

namespace adjoin::data {
namespace {

using Strings = std::vector<std::string>;

/// Three images of 2 x 4 pixels to train, two to validate.
struct IdxParts {
  std::string train_images = make_idx({3, 2, 4}, counting(24));
  std::string train_labels = make_idx({3}, {2, 0, 1});
  std::string val_images = make_idx({2, 2, 4}, counting(16, 100));
  std::string val_labels = make_idx({2}, {1, 1});
};

void write_idx(const TempFolder& folder, const IdxParts& parts = {}) {
  folder.write("train-images-idx3-ubyte", parts.train_images);
  folder.write("train-labels-idx1-ubyte", parts.train_labels);
  folder.write("t10k-images-idx3-ubyte", parts.val_images);
  folder.write("t10k-labels-idx1-ubyte", parts.val_labels);
}

void expect_refused(const std::string& file, std::initializer_list<std::string_view> parts) {
  const io::FileBytes bytes = io::own_bytes("file", io::to_bytes(file));
  expect_error(ErrorKind::kData, {"file: "}, [&] { read_idx(bytes, 3); });
  expect_error(ErrorKind::kData, parts, [&] { read_idx(bytes, 3); });
}

TEST(IdxTest, ImagesAndLabelsComeBackAsTheyWereWritten) {
  const TempFolder folder;
  write_idx(folder);
  const DataSets sets = open_all("idx:" + folder.path());
  EXPECT_EQ(sets.train->name, "idx:" + folder.path() + " train");
  EXPECT_EQ(sets.train->labels, (std::vector<int64_t>{2, 0, 1}));
  EXPECT_EQ(sets.val.labels, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(sets.train->classes, (Strings{"0", "1", "2"}));
  EXPECT_EQ(sets.val.classes, sets.train->classes);
  const Image image = std::get<Image>(sets.train->read(1));
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(image.width, 4);
  EXPECT_EQ(image.channels, 1);
  EXPECT_EQ(image.pixels, (std::vector<uint8_t>{8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(pixels_of(sets.val, 1), (std::vector<uint8_t>{108, 109, 110, 111, 112, 113, 114, 115}));
  EXPECT_TRUE(contains(sets.val.describe(1), "val image 1"));
}

TEST(IdxTest, PackedFilesAndNamesWithADotAreTheSame) {
  const TempFolder folder;
  const IdxParts parts;
  folder.write("train-images.idx3-ubyte", parts.train_images);
  folder.write("train-labels-idx1-ubyte.gz", gzip(parts.train_labels));
  folder.write("t10k-images.idx3-ubyte.gz", gzip(parts.val_images));
  folder.write("t10k-labels.idx1-ubyte", gzip(parts.val_labels));  // what it holds decides
  const DataSets sets = open_all("idx:" + folder.path());
  EXPECT_EQ(sets.train->labels, (std::vector<int64_t>{2, 0, 1}));
  EXPECT_EQ(pixels_of(*sets.train, 2)[7], 23);
  EXPECT_EQ(pixels_of(sets.val, 0)[0], 100);
}

TEST(IdxTest, FilesCutAnywhereAndFilesWithMoreAreRefused) {
  const std::string plain = make_idx({3, 2, 4}, counting(24));
  for (const std::string& whole : {plain, gzip(plain)}) {
    for (size_t size = 0; size < whole.size(); ++size) {
      expect_refused(whole.substr(0, size), {"file: "});
    }
  }
  expect_refused(plain + "x", {"25 bytes after its header, which says 3 x 2 x 4"});
  expect_refused(gzip(plain) + "x", {"1 bytes follow the end of the gzip"});
  expect_refused(gzip(plain) + gzip(plain), {"follow the end of the gzip"});
  expect_refused(gzip(plain + "x"), {"more bytes than its header says"});
  expect_refused(gzip(plain.substr(0, 30)), {"fewer bytes than its header says: 10 more"});
}

TEST(IdxTest, OtherMagicNumbersAreRefused) {
  const std::string plain = make_idx({3, 2, 4}, counting(24));
  for (size_t at = 0; at < 4; ++at) {
    std::string flipped = plain;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    expect_refused(flipped, {"magic number", "must be 00000803"});
    expect_refused(gzip(flipped), {"magic number", "must be 00000803"});
  }
  expect_refused(make_idx({24}, counting(24)), {"magic number 00000801"});
}

TEST(IdxTest, SizesThatLieAreRefusedBeforeMemoryIsTaken) {
  const std::string huge = make_idx({0xffffffff, 0xffffffff, 0xffffffff}, counting(24));
  expect_refused(huge, {"more than a file can hold"});
  expect_refused(gzip(huge), {"more than a file can hold"});
  const std::string large = make_idx({0xffffffff, 2, 4}, counting(24));
  expect_refused(large, {"24 bytes after its header, which says 4294967295 x 2 x 4"});
  expect_refused(gzip(large), {"fewer bytes than its header says"});
  expect_refused(make_idx({3, 0, 4}, ""), {"3 x 0 x 4, none may be 0"});
  const std::string bomb = gzip(make_idx({1, 1, 1}, std::string(size_t{1} << 26, '\0')));
  ASSERT_LT(bomb.size(), size_t{1} << 17);
  expect_refused(bomb, {"more bytes than its header says"});
}

TEST(IdxTest, DamagedGzipsAreRefused) {
  const std::string whole = gzip(make_idx({3, 2, 4}, counting(24)));
  for (size_t at = 10; at < whole.size(); ++at) {  // the 10 of its header hold a time and the like
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x01);
    expect_refused(flipped, {"file: "});
  }
}

void expect_set_refused(const IdxParts& parts, std::initializer_list<std::string_view> words) {
  const TempFolder folder;
  write_idx(folder, parts);
  expect_error(ErrorKind::kData, words, [&] { open_all("idx:" + folder.path()); });
}

TEST(IdxTest, LabelsMustFitTheImages) {
  IdxParts parts;
  parts.train_labels = make_idx({2}, {0, 1});
  expect_set_refused(parts, {"train-labels-idx1-ubyte: holds 2 labels", "holds 3 images"});
  parts = {};
  parts.val_labels = make_idx({2}, {1, 3});
  expect_set_refused(parts, {"t10k-labels-idx1-ubyte: label 3 of image 1", "must be 0 to 2"});
  parts = {};
  parts.train_labels = make_idx({3}, {0, 1, 9});
  expect_set_refused(parts, {"train-labels-idx1-ubyte", "the label 9 but never 2"});
}

TEST(IdxTest, LabelsMayCountFromOne) {
  const TempFolder folder;
  IdxParts parts;
  parts.train_labels = make_idx({3}, {2, 3, 1});
  write_idx(folder, parts);
  EXPECT_EQ(open_all("idx:" + folder.path()).train->classes, (Strings{"0", "1", "2", "3"}));
}

TEST(IdxTest, ClassesAreThoseOfTrainWhereOnlyValIsWanted) {
  const TempFolder folder;
  write_idx(folder);
  const DataSets sets = open_data({.data = "idx:" + folder.path(), .is_train_needed = false});
  EXPECT_FALSE(sets.train);
  EXPECT_EQ(sets.val.classes.size(), 3U);
}

TEST(IdxTest, MissingFilesAreNamed) {
  const TempFolder folder;
  const auto open = [&] { open_all("idx:" + folder.path()); };
  expect_error(ErrorKind::kData, {folder.path(), "has no train-images-idx3-ubyte"}, open);
  folder.write("train-images-idx3-ubyte", "x");
  expect_error(ErrorKind::kData, {"train-labels-idx1-ubyte[.gz] is not"}, open);
  expect_error(ErrorKind::kIo, {folder / "none", "no such folder"},
               [&] { open_all("idx:" + (folder / "none")); });
}

TEST(IdxTest, FashionMnistIsReadOrItsPackageNamed) {
  const DataOptions options = {.data = "fashion-mnist", .is_train_needed = false};
  if (place_at("/usr/share/datasets/fashion-mnist") == Place::kNothing) {
    expect_error(ErrorKind::kMissingPart, {"dataset-fashion-mnist"}, [&] { open_data(options); });
    GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  }
  const DataSets sets = open_all("fashion-mnist");
  EXPECT_EQ(sets.train->size(), 60'000);
  EXPECT_EQ(sets.val.size(), 10'000);
  EXPECT_EQ(sets.val.classes[9], "Ankle boot");
  EXPECT_EQ(sets.val.labels[0], 9);
  for (const int64_t label : {0, 4, 9}) {
    EXPECT_EQ(std::count(sets.train->labels.begin(), sets.train->labels.end(), label), 6000);
  }
  EXPECT_EQ(pixels_of(sets.val, 9'999).size(), 784U);
}

}  // namespace
}  // namespace adjoin::data
