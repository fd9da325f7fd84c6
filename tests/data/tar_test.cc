#include "adjoin/data/tar.h"

#include "adjoin/data/tar_entry.h"
#include "data/make_idx.h"
#include "data/make_tar.h"
#include "data/read_split.h"
#include "io/make_safetensors.h"
#include "support/expect_error.h"
#include "support/python_folder.h"

namespace adjoin::data {
namespace {

using Strings = std::vector<std::string>;

const std::vector<TarMember> kThree = {
    {"b/1.jpg", "one"}, {"a/2.png", std::string(600, '2')}, {"b/3.jpg", ""}};

io::FileBytes file_of(const std::string& tar) { return io::own_bytes("file", io::to_bytes(tar)); }

void expect_refused(const std::string& tar, std::initializer_list<std::string_view> parts) {
  expect_error(ErrorKind::kData, {"file: "}, [&] { index_tars({file_of(tar)}); });
  expect_error(ErrorKind::kData, parts, [&] { index_tars({file_of(tar)}); });
}

/// The paths a tar holds.
Strings paths_in(const std::string& tar) {
  Strings paths;
  const io::FileBytes file = file_of(tar);
  uint64_t at = 0;
  while (const auto entry = read_tar_entry(file, at)) {
    paths.push_back(entry->path);
    at = entry->next;
  }
  return paths;
}

TEST(TarTest, TheClassIsTheFolderAndTheBytesLieInTheFile) {
  const TempFolder folder;
  const Split split = open_single("tar:" + folder.write("set.tar", make_tar(kThree)));
  EXPECT_EQ(split.classes, (Strings{"a", "b"}));
  EXPECT_EQ(split.labels, (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(all_bytes(split), (Strings{"one", std::string(600, '2'), ""}));
  EXPECT_EQ(split.describe(1), folder / "set.tar" + ": \"a/2.png\"");
}

TEST(TarTest, WhatPythonWritesIsRead) {
  const PythonFolder folder("data/write_tars.py", "tarfile");
  if (!folder.missing().empty()) GTEST_SKIP() << folder.missing();
  for (const std::string format : {"ustar", "gnu", "pax"}) {
    SCOPED_TRACE(format);
    const std::string path = folder / (format + ".tar");
    std::string paths;
    for (const std::string& entry : paths_in(read_file(path))) paths += entry + "\n";
    EXPECT_EQ(paths, read_file(folder / (format + ".paths")));
    const Split split = open_single("tar:" + path);
    std::string classes;
    std::string bytes;
    for (int64_t i = 0; i < split.size(); ++i) {
      const auto label = static_cast<size_t>(split.labels[static_cast<size_t>(i)]);
      classes += split.classes[label] + "\n";
      bytes += bytes_of(split, i);
    }
    EXPECT_EQ(classes, read_file(folder / (format + ".classes")));
    EXPECT_EQ(bytes, read_file(folder / (format + ".images")));
    EXPECT_EQ(split.size(), format == "ustar" ? 5 : 6);
  }
  EXPECT_EQ(open_single("tar:" + (folder / "global.tar")).size(), 1);
}

TEST(TarTest, LongNamesComeWhole) {
  const std::string path = "class/" + std::string(300, 'n') + ".jpg";
  const TarMember image = {"class/short", "x"};
  EXPECT_EQ(paths_in(make_tar({{"././@LongLink", path + '\0', 'L'}, image})), Strings{path});
  EXPECT_EQ(paths_in(make_tar({{"x", pax_record("path", path), 'x'}, image})), Strings{path});
  TarMember split = {"1.jpg", "x"};
  split.prefix = "some/prefix";
  EXPECT_EQ(paths_in(make_tar({split})), Strings{"some/prefix/1.jpg"});
  split.magic = std::string("ustar  \0", 8);  // GNU keeps times where ustar has the prefix
  EXPECT_EQ(paths_in(make_tar({split})), Strings{"1.jpg"});
}

TEST(TarTest, SizesComeInOctalBase256AndPax) {
  TarMember image = {"a/1.jpg", "four"};
  for (const std::string& size :
       {std::string("         4 \0", 12), std::string("\x80\0\0\0\0\0\0\0\0\0\0\4", 12)}) {
    image.size = size;
    EXPECT_EQ(read_tar_entry(file_of(make_tar({image})), 0)->data.size(), 4U);
  }
  image.size = "00000000000";
  const std::string tar = make_tar({{"x", pax_record("size", "4"), 'x'}, image});
  EXPECT_EQ(read_tar_entry(file_of(tar), 0)->data.size(), 4U);
  EXPECT_EQ(paths_in(tar), Strings{"a/1.jpg"});
}

TEST(TarTest, SplitsAreTarsOrShardsOfAFolder) {
  const std::string a = make_tar({{"a/1.jpg", "1"}});
  const std::string b = make_tar({{"b/2.jpg", "2"}});
  {
    const TempFolder folder;
    folder.write("train.tar", make_tar({{"train/b/2.jpg", "2"}, {"train/a/1.jpg", "1"}}));
    folder.write("val.tar", b);
    const DataSets sets = open_all("tar:" + folder.path());
    EXPECT_EQ(sets.train->labels, (std::vector<int64_t>{1, 0}));
    EXPECT_EQ(sets.val.labels, (std::vector<int64_t>{1}));
    EXPECT_EQ(open_single("tar:" + folder.path()).classes, (Strings{"a", "b"}));
  }
  const TempFolder folder;
  folder.write("train-000.tar", b);
  folder.write("train-001.tar", a);
  folder.write("val-000.tar", a);
  const DataSets sets = open_all("tar:" + folder.path());
  EXPECT_EQ(all_bytes(*sets.train), (Strings{"2", "1"}));
  EXPECT_EQ(sets.train->labels, (std::vector<int64_t>{1, 0}));
  folder.write("train.tar", a);
  expect_error(ErrorKind::kData, {"both train.tar and shards", "train-*.tar"},
               [&] { open_all("tar:" + folder.path()); });
}

TEST(TarTest, ClassesThatOnlyValHasAreRefused) {
  const TempFolder folder;
  folder.write("train.tar", make_tar({{"a/1.jpg", "1"}}));
  folder.write("val.tar", make_tar({{"b/1.jpg", "1"}}));
  expect_error(ErrorKind::kData, {"val.tar", "no class \"b\""},
               [&] { open_all("tar:" + folder.path()); });
}

TEST(TarTest, FoldersWithoutTarsAreRefused) {
  const TempFolder folder;
  expect_error(ErrorKind::kData, {folder.path(), "train.tar", "val-*.tar"},
               [&] { open_all("tar:" + folder.path()); });
}

TEST(TarTest, FilesCutAnywhereAreRefused) {
  const std::string whole = make_tar(kThree);
  for (size_t size = 0; size < whole.size(); ++size) {
    expect_refused(whole.substr(0, size), {"file: "});
  }
  expect_refused(whole.substr(0, whole.size() - 512), {"cut short", "without an end mark"});
  expect_refused(whole + whole, {"something follows the end mark", "--concatenate"});
  EXPECT_EQ(index_tars({file_of(whole + std::string(9000, '\0'))}).images.size(), 3U);
}

TEST(TarTest, HeadersWithWrongChecksumsAreRefused) {
  const std::string whole = make_tar(kThree);
  for (size_t at = 0; at < 512; ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x04);
    if (at == 155) continue;  // behind the checksum stands what nobody reads
    expect_refused(flipped, {"file: is no tar: the checksum of the header at byte 0 is wrong"});
  }
  std::string second = whole;
  second[1024] = 'c';
  expect_refused(second, {"is a broken tar", "byte 1024"});
  expect_refused(gzip(whole) + std::string(512, '\1'), {"is compressed", "gunzip"});
  expect_refused(std::string(2000, 'x'), {"is no tar"});
}

TEST(TarTest, SizesThatLieAreRefused) {
  for (const std::string& size :
       {std::string("77777777777"), std::string("\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 12),
        std::string("\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12),
        std::string("00000003001")}) {
    TarMember lie = {"a/1.jpg", "four"};
    lie.size = size;
    expect_refused(make_tar({lie}), {"\"a/1.jpg\" of", "reaches beyond its end"});
  }
  for (const std::string& size :
       {std::string("-0000000004"), std::string("0x000000004"), std::string("00000000008"),
        std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfc", 12),
        std::string("           "), std::string("\x80\0\0\1\0\0\0\0\0\0\0\4", 12)}) {
    TarMember lie = {"a/1.jpg", "four"};
    lie.size = size;
    expect_refused(make_tar({lie}), {"the size at byte 0 is no number"});
  }
  for (const char* size :
       {"18446744073709551615", "18446744073709551616", "-1", "", "4x", "5000"}) {
    expect_refused(make_tar({{"x", pax_record("size", size), 'x'}, {"a/1.jpg", "four"}}),
                   {"file: "});
  }
}

TEST(TarTest, BrokenExtensionsAreRefused) {
  const TarMember image = {"a/1.jpg", "x"};
  const std::string good = pax_record("path", "a/2.jpg");
  for (size_t size = 1; size < good.size(); ++size) {
    expect_refused(make_tar({{"x", good.substr(0, size), 'x'}, image}), {"pax header"});
  }
  for (const char* record : {"99 path=a\n", "0 path=a\n", "7 patha\n", "9 path=a", "path=a\n",
                             "99999999999999999999 a=b\n", "-9 path=a\n", "2 \n", "1\n"}) {
    expect_refused(make_tar({{"x", record, 'x'}, image}), {"pax header"});
  }
  expect_refused(make_tar({{"x", good + good, 'x'}, image}), {"two names"});
  expect_refused(make_tar({{"x", "a/3.jpg", 'L'}, {"x", good, 'x'}, image}), {"two names"});
  expect_refused(make_tar({{"x", good, 'x'}}), {"extends no entry"});
  expect_refused(make_tar({{"x", std::string(5000, 'n'), 'L'}, image}), {"5000 bytes is too long"});
  expect_refused(make_tar({{"x", std::string((1 << 20) + 1, 'n'), 'x'}, image}), {"is too long"});
  expect_refused(make_tar({{"x", pax_record("size", "1"), 'g'}, image}), {"for all entries"});
}

TEST(TarTest, SparseFilesLinksAndUnknownEntriesAreRefused) {
  expect_refused(make_tar({{"a/1.jpg", "x", 'S'}}), {"sparse file", "without --sparse"});
  expect_refused(make_tar({{"x", pax_record("GNU.sparse.major", "1"), 'x'}, {"a/1.jpg", "x"}}),
                 {"sparse file"});
  expect_refused(make_tar({{"a/1.jpg", "x", 'M'}}), {"\"a/1.jpg\"", "unknown type \"M\""});
  for (const char type : {'1', '2'}) {
    expect_refused(make_tar({{"a/1.jpg", "", type}}), {"is a link", "--dereference"});
  }
}

TEST(TarTest, PathsThatLeaveTheFolderAreOnlyNames) {
  const std::string tar = make_tar({{"../../etc/passwd.jpg", "x"}, {"/abs/b/2.png", "y"}});
  EXPECT_EQ(index_tars({file_of(tar)}).classes, (Strings{"b", "etc"}));
  expect_refused(make_tar({{"a/../1.jpg", "x"}}), {"\"..\" is no name for a class"});
}

TEST(TarTest, ImagesNeedAClassAndFoldersImages) {
  expect_refused(make_tar({{"1.jpg", "x"}}), {"\"1.jpg\" lies in no folder"});
  expect_refused(make_tar({{"./1.jpg", "x"}}), {"lies in no folder"});
  expect_refused(make_tar({{"a/1.txt", "x"}}), {"holds no image in a folder"});
  expect_refused(tar_end(), {"holds no image in a folder"});
  expect_refused(make_tar({{"a/1.jpg", "x"}, {"a/2.tiff", "x"}}), {"a/2.tiff", "JPEG or a PNG"});
  expect_refused(make_tar({{"a/1.jpg", "x"}, {"ab/", "", '5'}}), {"the folder \"ab\" holds no"});
  expect_refused(make_tar({{"a\n/1.jpg", "x"}}), {"no name for a class"});
  EXPECT_EQ(
      index_tars({file_of(make_tar({{"./", "", '5'}, {"set/", "", '5'}, {"set/a/1.jpg", "x"}}))})
          .classes,
      Strings{"a"});
}

}  // namespace
}  // namespace adjoin::data
