#include "adjoin/data/cifar.h"

#include "data/read_split.h"
#include "io/make_safetensors.h"
#include "support/expect_error.h"

namespace adjoin::data {
namespace {

constexpr size_t kPlane = 1024;

/// Red counts up from `label`, green is all `label` + 100, blue counts down.
std::string record(int label) {
  std::string bytes(1 + 3 * kPlane, '\0');
  bytes[0] = static_cast<char>(label);
  for (size_t i = 0; i < kPlane; ++i) {
    bytes[1 + i] = static_cast<char>(label + static_cast<int>(i));
    bytes[1 + kPlane + i] = static_cast<char>(label + 100);
    bytes[1 + 2 * kPlane + i] = static_cast<char>(255 - static_cast<int>(i));
  }
  return bytes;
}

void write_cifar(const TempFolder& folder) {
  for (int i = 1; i <= 5; ++i) {
    folder.write("data_batch_" + std::to_string(i) + ".bin", record(i) + record(i + 4));
  }
  folder.write("test_batch.bin", record(0) + record(9) + record(3));
}

TEST(CifarTest, ImagesAndLabelsComeBackInTheOrderOfTheFiles) {
  const TempFolder folder;
  write_cifar(folder);
  const DataSets sets = open_all("cifar10:" + folder.path());
  EXPECT_EQ(sets.train->labels, (std::vector<int64_t>{1, 5, 2, 6, 3, 7, 4, 8, 5, 9}));
  EXPECT_EQ(sets.val.labels, (std::vector<int64_t>{0, 9, 3}));
  const Image image = std::get<Image>(sets.train->read(3));  // the second of data_batch_2, label 6
  EXPECT_EQ(image.width, 32);
  EXPECT_EQ(image.height, 32);
  EXPECT_EQ(image.channels, 3);
  for (size_t i = 0; i < kPlane; ++i) {
    EXPECT_EQ(image.pixels[3 * i], (6 + i) % 256);
    EXPECT_EQ(image.pixels[3 * i + 1], 106);
    EXPECT_EQ(image.pixels[3 * i + 2], (255 - i) % 256);
  }
}

TEST(CifarTest, ClassesAreNamedByTheMetaFileIfItIsThere) {
  const TempFolder folder;
  write_cifar(folder);
  const std::string data = "cifar10:" + folder.path();
  EXPECT_EQ(open_single(data).classes[9], "truck");
  folder.write("batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nzebra\r\n\n");
  EXPECT_EQ(open_single(data).classes[9], "zebra");
  const std::string eleven = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n";
  for (const std::string& text : {std::string("a\nb\n"), eleven, std::string("\xff\n")}) {
    folder.write("batches.meta.txt", text);
    expect_error(ErrorKind::kData, {"batches.meta.txt: "}, [&] { open_single(data); });
  }
}

TEST(CifarTest, FilesThatAreNotWholeRecordsAreRefused) {
  const std::string whole = record(1) + record(2);
  for (size_t size = 0; size < whole.size(); size += 61) {
    const io::FileBytes file = io::own_bytes("file", io::to_bytes(whole.substr(0, size)));
    Pixels pixels;
    std::vector<int64_t> labels;
    expect_error(ErrorKind::kData, {"file: has " + std::to_string(size), "a multiple of 3073"},
                 [&] { read_cifar(file, pixels, labels); });
  }
}

TEST(CifarTest, LabelsOutOfRangeAreRefused) {
  const TempFolder folder;
  write_cifar(folder);
  folder.write("data_batch_3.bin", record(1) + record(10));
  expect_error(ErrorKind::kData, {"data_batch_3.bin: label 10 of image 1", "must be 0 to 9"},
               [&] { open_all("cifar10:" + folder.path()); });
}

TEST(CifarTest, MissingFilesAreNamed) {
  const TempFolder folder;
  const auto open = [&] { open_all("cifar10:" + folder.path()); };
  expect_error(ErrorKind::kData, {"has no data_batch_1.bin"}, open);
  write_cifar(folder);
  std::remove((folder / "data_batch_4.bin").c_str());
  expect_error(ErrorKind::kIo, {"data_batch_4.bin"}, open);
  EXPECT_EQ(open_single("cifar10:" + folder.path()).size(), 3);
}

}  // namespace
}  // namespace adjoin::data
