#include "adjoin/core/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "support/expect_error.h"

namespace adjoin {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public testing::Test {
 protected:
  AtomicFileTest()
      : folder_(testing::TempDir() + "adjoin_atomic_" +
                testing::UnitTest::GetInstance()->current_test_info()->name()),
        path_(folder_ + "/file") {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  ~AtomicFileTest() override { fs::remove_all(folder_); }

  static std::string text_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  size_t count_files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  const std::string folder_;
  const std::string path_;
};

/// Files of this process end at `bytes` as if the disk were full.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_limit_);
    const rlimit limit{bytes, old_limit_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SmallDisk() {
    setrlimit(RLIMIT_FSIZE, &old_limit_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_limit_{};
  void (*old_handler_)(int);
};

TEST_F(AtomicFileTest, PutsTheWholeTextInPlaceOfTheOldFile) {
  std::ofstream(path_) << "old";
  AtomicFile file(path_);
  file.write("new ");
  file.write(std::as_bytes(std::span("text", 4)));
  EXPECT_EQ(text_of(path_), "old");
  file.commit();
  EXPECT_EQ(text_of(path_), "new text");
  EXPECT_EQ(count_files(), 1U);
}

TEST_F(AtomicFileTest, LeavesNothingBehindWithoutACommit) {
  std::ofstream(path_) << "old";
  {
    AtomicFile file(path_);
    file.write("half");
    EXPECT_LE(count_files(), 2U);
  }
  EXPECT_EQ(text_of(path_), "old");
  EXPECT_EQ(count_files(), 1U);
}

TEST_F(AtomicFileTest, LeavesTheOldFileWhenTheDiskIsFull) {
  std::ofstream(path_) << "old";
  expect_error(ErrorKind::kIo, {path_, "cannot be written"}, [&] {
    const SmallDisk disk(1000);
    AtomicFile file(path_);
    file.write(std::string(5000, 'x'));
    file.commit();
  });
  EXPECT_EQ(text_of(path_), "old");
  EXPECT_EQ(count_files(), 1U);
}

TEST_F(AtomicFileTest, LeavesNothingBehindWhenTheRenameFails) {
  expect_error(ErrorKind::kIo, {path_, "directory"}, [&] {
    AtomicFile file(path_);
    file.write("text");
    fs::create_directory(path_);
    file.commit();
  });
  EXPECT_EQ(count_files(), 1U);
}

TEST_F(AtomicFileTest, TwoWritersOfOneFileDoNotMix) {
  const auto write = [&](char letter) {
    for (int i = 0; i < 20; ++i) {
      AtomicFile file(path_);
      for (int part = 0; part < 10; ++part) file.write(std::string(100, letter));
      file.commit();
    }
  };
  std::thread other(write, 'a');
  write('b');
  other.join();
  const std::string text = text_of(path_);
  EXPECT_EQ(text, std::string(1000, text.at(0)));
  EXPECT_EQ(count_files(), 1U);
}

TEST_F(AtomicFileTest, GivesTheFileTheModeOfTheUmask) {
  const mode_t old_mask = umask(027);
  AtomicFile file(path_);
  umask(old_mask);
  file.commit();
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

TEST_F(AtomicFileTest, TakesANameAsLongAsNamesCanBe) {
  const std::string longest = folder_ + "/" + std::string(255, 'n');
  AtomicFile file(longest);
  file.commit();
  EXPECT_TRUE(fs::exists(longest));
}

TEST_F(AtomicFileTest, RefusesAPlaceThatIsNoFile) {
  expect_error(ErrorKind::kIo, {folder_, "is a folder"}, [&] { AtomicFile file(folder_); });
  expect_error(ErrorKind::kIo, {"/dev/null", "regular file"}, [] { AtomicFile file("/dev/null"); });
  expect_error(ErrorKind::kIo, {"No such file"}, [&] { AtomicFile file(folder_ + "/no/file"); });
  expect_error(ErrorKind::kIo, {"empty"}, [] { AtomicFile file(""); });
}

TEST_F(AtomicFileTest, RefusesWritesAfterTheCommit) {
  AtomicFile file(path_);
  file.commit();
  expect_error(ErrorKind::kInternal, {"after commit"}, [&] { file.write("late"); });
  expect_error(ErrorKind::kInternal, {"twice"}, [&] { file.commit(); });
}

}  // namespace
}  // namespace adjoin
