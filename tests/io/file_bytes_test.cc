#include "adjoin/io/file_bytes.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "io/make_safetensors.h"
#include "support/expect_error.h"

namespace adjoin::io {
namespace {

class FileBytesTest : public testing::Test {
 protected:
  FileBytesTest()
      : path_(testing::TempDir() + "adjoin_bytes_" +
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(path_);
  }
  ~FileBytesTest() override { std::filesystem::remove_all(path_); }

  const std::string path_;
};

TEST_F(FileBytesTest, MapsAFileThatOutlivesItsCopies) {
  std::ofstream(path_) << "abc";
  FileBytes copy;
  {
    const FileBytes file = map_file(path_);
    EXPECT_EQ(file.origin, path_);
    copy = file;
  }
  std::filesystem::remove(path_);
  ASSERT_EQ(copy.bytes.size(), 3U);
  EXPECT_EQ(std::memcmp(copy.bytes.data(), "abc", 3), 0);
}

TEST_F(FileBytesTest, KeepsWritesToThePagesAwayFromTheFile) {
  std::ofstream(path_) << "abc";
  const FileBytes file = map_file(path_);
  const_cast<std::byte&>(file.bytes[0]) = std::byte{'X'};
  std::string text;
  std::ifstream(path_) >> text;
  EXPECT_EQ(text, "abc");
}

TEST_F(FileBytesTest, OwnsBytesInMemory) {
  const FileBytes file = own_bytes("memory", to_bytes("xyz"));
  EXPECT_EQ(file.origin, "memory");
  EXPECT_EQ(std::memcmp(file.bytes.data(), "xyz", 3), 0);
}

TEST_F(FileBytesTest, RefusesAPipeWithoutWaitingForItsWriter) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  expect_error(ErrorKind::kData, {path_, "is a pipe"}, [&] { map_file(path_); });
}

TEST_F(FileBytesTest, RefusesWhatIsNoRegularFile) {
  std::filesystem::create_directory(path_);
  expect_error(ErrorKind::kData, {path_, "is a folder"}, [&] { map_file(path_); });
  expect_error(ErrorKind::kData, {"/dev/zero", "is a device"}, [] { map_file("/dev/zero"); });
}

TEST_F(FileBytesTest, RefusesAnEmptyFile) {
  std::ofstream{path_};
  expect_error(ErrorKind::kData, {path_, "is empty"}, [&] { map_file(path_); });
}

TEST_F(FileBytesTest, SaysWhyAFileCannotBeOpened) {
  expect_error(ErrorKind::kIo, {path_, "No such file"}, [&] { map_file(path_); });
}

}  // namespace
}  // namespace adjoin::io
