#include <unistd.h>

#include "data/read_split.h"
#include "support/expect_error.h"
#include "support/run_program.h"

namespace adjoin::data {
namespace {

using Strings = std::vector<std::string>;

TEST(FolderTest, ImagesComeSortedWithTheClassOfTheirFolder) {
  const TempFolder folder;
  write_tree(folder, {"train/dog/2.png", "train/dog/10.JPEG", "train/cat/b.jpg", "train/cat/a.jpeg",
                      "train/eel/in/ner/x.JPG", "train/eel/y.Png", "validation/eel/1.jpg",
                      "validation/cat/1.jpg"});
  const DataSets sets = open_all(folder.path());
  EXPECT_EQ(sets.train->classes, (Strings{"cat", "dog", "eel"}));
  EXPECT_EQ(sets.train->labels, (std::vector<int64_t>{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(all_bytes(*sets.train),
            (Strings{"bytes of train/cat/a.jpeg", "bytes of train/cat/b.jpg",
                     "bytes of train/dog/10.JPEG", "bytes of train/dog/2.png",
                     "bytes of train/eel/in/ner/x.JPG", "bytes of train/eel/y.Png"}));
  EXPECT_EQ(sets.train->describe(4), folder / "train/eel/in/ner/x.JPG");
  EXPECT_EQ(sets.val.classes, sets.train->classes);
  EXPECT_EQ(sets.val.labels, (std::vector<int64_t>{0, 2}));  // no dog, and eel is still 2
}

TEST(FolderTest, ClassesOfValAreThoseOfTrainWhereTrainIsNotRead) {
  const TempFolder folder;
  write_tree(folder, {"train/a/", "train/b/", "train/c/", "val/c/1.jpg"});
  const DataSets sets = open_data({.data = "folder:" + folder.path(), .is_train_needed = false});
  EXPECT_FALSE(sets.train);
  EXPECT_EQ(sets.val.classes, (Strings{"a", "b", "c"}));
  EXPECT_EQ(sets.val.labels, (std::vector<int64_t>{2}));
}

TEST(FolderTest, ValIsTakenBeforeTest) {
  const TempFolder folder;
  write_tree(folder, {"train/a/1.jpg", "test/a/1.jpg"});
  EXPECT_EQ(all_bytes(open_all(folder.path()).val), (Strings{"bytes of test/a/1.jpg"}));
  write_tree(folder, {"val/a/1.jpg"});
  EXPECT_EQ(all_bytes(open_all(folder.path()).val), (Strings{"bytes of val/a/1.jpg"}));
}

TEST(FolderTest, ClassFoldersAloneAreEnoughToEvaluate) {
  const TempFolder folder;
  write_tree(folder, {"b/1.jpg", "a/1.jpg", "a/2.jpg", "a/notes.txt", "list.txt", ".hidden/1.jpg",
                      "a/._1.jpg"});
  EXPECT_EQ(open_single(folder.path()).labels, (std::vector<int64_t>{0, 0, 1}));
  expect_error(ErrorKind::kData, {folder.path(), "no validation images", "--val-fraction"},
               [&] { open_all(folder.path()); });
}

/// The order of class folders that torchvision uses is Python's sorted().
TEST(FolderTest, ClassOrderIsThatOfPython) {
  const TempFolder folder;
  const Strings names = {"10", "9", "a", "B", "Z", "z", "ä", "_", "é", "n01440764", "🙂", "ｚ"};
  for (const std::string& name : names) write_tree(folder, {name + "/1.jpg"});
  const ProgramResult python = run_program(
      "/usr/bin/python3", {"-c",
                           "import os, sys; sys.stdout.buffer.write('\\n'.join(sorted("
                           "os.fsencode(n).decode() for n in os.listdir(sys.argv[1]))).encode())",
                           folder.path()});
  ASSERT_EQ(python.exit_code, 0) << python.err;
  std::string joined;
  for (const std::string& name : open_single(folder.path()).classes) joined += name + "\n";
  EXPECT_EQ(joined, python.out + "\n");
}

TEST(FolderTest, ClassesWithoutImagesAreRefused) {
  const TempFolder folder;
  write_tree(folder, {"train/a/1.jpg", "train/b/", "val/a/1.jpg"});
  expect_error(ErrorKind::kData, {"train/b: holds no .jpg"}, [&] { open_all(folder.path()); });
  write_tree(folder, {"train/b/1.jpg", "val/b/readme.md"});
  expect_error(ErrorKind::kData, {"val/b: holds no .jpg"}, [&] { open_all(folder.path()); });
}

TEST(FolderTest, ClassesThatOnlyValHasAreRefused) {
  const TempFolder folder;
  write_tree(folder, {"train/a/1.jpg", "val/a/1.jpg", "val/b/1.jpg"});
  for (const bool is_train_needed : {false, true}) {
    expect_error(ErrorKind::kData, {"val/b", "no class \"b\""},
                 [&] { open_data({.data = folder.path(), .is_train_needed = is_train_needed}); });
  }
}

TEST(FolderTest, ImagesOfOtherFormatsAreRefusedRatherThanLeftOut) {
  const TempFolder folder;
  write_tree(folder, {"a/1.jpg", "a/2.webp"});
  expect_error(ErrorKind::kData, {"a/2.webp", "JPEG or a PNG"},
               [&] { open_single(folder.path()); });
}

TEST(FolderTest, FoldersWithoutClassesAreRefused) {
  const TempFolder folder;
  expect_error(ErrorKind::kData, {folder.path(), "one for each class"},
               [&] { open_single(folder.path()); });
  write_tree(folder, {"val/ILSVRC2012_val_00000001.JPEG"});
  expect_error(ErrorKind::kData, {"val: ", "one for each class"},
               [&] { open_single(folder.path()); });
  expect_error(ErrorKind::kData, {"none to train on"}, [&] { open_all(folder.path()); });
}

TEST(FolderTest, LinksAreFollowedButNotInCircles) {
  const TempFolder folder;
  write_tree(folder, {"store/deep/1.jpg", "set/b/2.jpg"});
  ASSERT_EQ(symlink("../store", (folder / "set/a").c_str()), 0);
  ASSERT_EQ(symlink("../../store/deep/1.jpg", (folder / "set/b/1.jpg").c_str()), 0);
  const Split split = open_single(folder / "set");
  EXPECT_EQ(split.labels, (std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ(bytes_of(split, 0), "bytes of store/deep/1.jpg");
  EXPECT_EQ(bytes_of(split, 1), "bytes of store/deep/1.jpg");
  ASSERT_EQ(symlink("..", (folder / "store/deep/up").c_str()), 0);
  expect_error(ErrorKind::kData, {"set/a/deep/up", "remove the link"},
               [&] { open_single(folder / "set"); });
}

TEST(FolderTest, LinksToNothingAreRefused) {
  for (const char* link : {"set/a/2.jpg", "set/a/inner", "set/b"}) {
    const TempFolder folder;
    write_tree(folder, {"set/a/1.jpg"});
    ASSERT_EQ(symlink("gone", (folder / link).c_str()), 0);
    expect_error(ErrorKind::kData, {folder / link + ": is a link to nothing"},
                 [&] { open_single(folder / "set"); });
  }
}

TEST(FolderTest, ImagesAreOpenedWhenTheyAreRead) {
  const TempFolder folder;
  write_tree(folder, {"a/1.jpg", "a/2.jpg"});
  folder.write("a/2.jpg", "");
  const Split split = open_single(folder.path());
  std::remove((folder / "a/1.jpg").c_str());
  expect_error(ErrorKind::kIo, {"a/1.jpg"}, [&] { split.read(0); });
  expect_error(ErrorKind::kData, {"a/2.jpg: is empty"}, [&] { split.read(1); });
}

TEST(FolderTest, ClassNamesMustBeText) {
  const TempFolder folder;
  write_tree(folder, {"\xff/1.jpg"});
  expect_error(ErrorKind::kData, {"no name for a class", "UTF-8"},
               [&] { open_single(folder.path()); });
}

}  // namespace
}  // namespace adjoin::data
