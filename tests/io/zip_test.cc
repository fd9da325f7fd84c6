#include "adjoin/io/zip.h"

#include <gtest/gtest.h>

#include "io/make_zip.h"
#include "support/expect_error.h"

namespace adjoin::io {
namespace {

MemoryBudget plenty() { return {"file: its pickle", size_t{1} << 30}; }

const std::vector<ZipMember> kTwo = {{"a/one", "first"}, {"a/two", "second"}};

void expect_refused(const std::string& zip, std::initializer_list<std::string_view> parts) {
  const FileBytes file = own_bytes("file", to_bytes(zip));
  auto budget = plenty();
  expect_error(ErrorKind::kData, {"file: "}, [&] { ZipArchive(file, budget); });
  expect_error(ErrorKind::kData, parts, [&] { ZipArchive(file, budget); });
}

/// kTwo with its second entry changed.
std::string with_second(const std::function<void(ZipMember&)>& change) {
  auto members = kTwo;
  change(members[1]);
  return make_zip(members);
}

TEST(ZipTest, FindsStoredEntriesWithAndWithoutZip64) {
  for (const bool has_end64 : {false, true}) {
    for (const uint16_t flags : {0x0808, 0x0800}) {
      auto members = kTwo;
      for (ZipMember& member : members) member.flags = flags;
      ZipOptions options;
      options.has_end64 = has_end64;
      options.comment = "a comment";
      const FileBytes file = own_bytes("file", to_bytes(make_zip(members, options)));
      auto budget = plenty();
      ZipArchive archive(file, budget);
      ASSERT_EQ(archive.entries().size(), 2U);
      ZipEntry* two = archive.find("a/two");
      ASSERT_NE(two, nullptr);
      EXPECT_EQ(std::memcmp(archive.read(*two).data(), "second", 6), 0);
      EXPECT_EQ(archive.find("a/three"), nullptr);
    }
  }
}

TEST(ZipTest, RefusesAFileCutAnywhere) {
  const std::string whole = make_zip(kTwo);
  for (size_t size = 0; size < whole.size(); ++size) {
    expect_refused(whole.substr(0, size), {"file: "});
  }
  expect_refused(whole + "x", {"something follows"});
  expect_refused(whole.substr(0, whole.size() - 1), {"without its end record"});
}

TEST(ZipTest, RefusesCompressedAndEncryptedEntries) {
  const FileBytes packed =
      own_bytes("file", to_bytes(with_second([](ZipMember& m) { m.method = 8; })));
  auto budget = plenty();
  const ZipArchive archive(packed, budget);
  expect_error(ErrorKind::kData,
               {"file: ", "\"a/two\" is compressed (method 8)", "torch.save stores"},
               [&] { archive.require_stored(); });
  expect_refused(with_second([](ZipMember& m) { m.flags |= 1; }), {"\"a/two\" is encrypted"});
}

TEST(ZipTest, RefusesDirectoriesThatLie) {
  const auto with = [](const std::function<void(ZipOptions&)>& change) {
    ZipOptions options;
    change(options);
    return make_zip(kTwo, options);
  };
  expect_refused(with([](ZipOptions& o) { o.disk = 1; }), {"in several files"});
  expect_refused(with([](ZipOptions& o) { o.count = 1; }), {"more records than it says"});
  expect_refused(with([](ZipOptions& o) { o.count = 3; }), {"3 entries do not fit"});
  expect_refused(with([](ZipOptions& o) { o.count = uint64_t{1} << 60; }), {"broken zip"});
  expect_refused(with([](ZipOptions& o) { o.directory_at = 1; }), {"does not end at byte"});
  expect_refused(with([](ZipOptions& o) { o.directory_size = UINT64_MAX; }), {"broken zip"});
  std::string shifted = make_zip(kTwo);
  shifted.replace(shifted.size() - 22 - 20 + 8, 8, number(UINT64_MAX - 8));
  expect_refused(shifted, {"no zip64 end record"});
  std::string other = make_zip(kTwo);
  other.replace(other.size() - 22 + 12, 4, number<uint32_t>(7));
  expect_refused(other, {"two end records disagree"});
}

TEST(ZipTest, RefusesEntriesWhoseHeadersDisagree) {
  expect_refused(with_second([](ZipMember& m) { m.local_name = "a/TWO"; }),
                 {"\"a/two\" has another name"});
  expect_refused(with_second([](ZipMember& m) {
                   m.flags = 0x0800;
                   m.local_size = 5;
                 }),
                 {"\"a/two\" has other sizes"});
  expect_refused(with_second([](ZipMember& m) { m.header_at = 3; }), {"no local header at byte 3"});
  expect_refused(with_second([](ZipMember& m) { m.header_at = 0xfffffff0; }), {"no local header"});
  expect_refused(with_second([](ZipMember& m) { m.header_at = 0xffffffff; }), {"lacks its zip64"});
  expect_refused(with_second([](ZipMember& m) { m.size = 0x7fffffff; }), {"beyond the end"});
  expect_refused(with_second([](ZipMember& m) { m.size = 0xffffffff; }), {"lacks its zip64 sizes"});
  expect_refused(with_second([](ZipMember& m) {
                   m.size = 0xffffffff;
                   m.extra = number<uint16_t>(1) + number<uint16_t>(16) + number(UINT64_MAX) +
                             number(UINT64_MAX);
                 }),
                 {"beyond the end"});
}

TEST(ZipTest, RefusesEntriesThatOverlapOrStandTwice) {
  expect_refused(make_zip({{"a/one", "first"}, {"a/one", "second"}}), {"\"a/one\" stands twice"});
  auto members = kTwo;
  members[0].size = 60;
  expect_refused(make_zip(members), {"\"a/one\" overlaps \"a/two\""});
  expect_refused(with_second([](ZipMember& m) { m.size = 60; }), {"overlaps the directory"});
  members = kTwo;
  members.push_back(members[0]);
  members[2].header_at = 0;
  expect_refused(make_zip(members), {"overlaps"});
}

TEST(ZipTest, ChecksTheCrcOfWhatIsReadOnly) {
  const FileBytes file =
      own_bytes("file", to_bytes(with_second([](ZipMember& m) { m.crc = 0x12345678; })));
  auto budget = plenty();
  ZipArchive archive(file, budget);
  EXPECT_EQ(archive.read(*archive.find("a/one")).size(), 5U);
  expect_error(ErrorKind::kData, {"file: ", "\"a/two\" is damaged", "not 12345678"},
               [&] { archive.read(*archive.find("a/two")); });
}

TEST(ZipTest, ChargesItsEntriesBeforeItReadsThem) {
  const FileBytes file = own_bytes("file", to_bytes(make_zip(kTwo)));
  MemoryBudget budget("file: its pickle", 40);
  expect_error(ErrorKind::kData, {"needs more memory than 40 bytes"},
               [&] { ZipArchive(file, budget); });
}

}  // namespace
}  // namespace adjoin::io
