#include "adjoin/core/json.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/expect_error.h"

namespace adjoin {
namespace {

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

class JsonFileTest : public testing::Test {
 protected:
  JsonFileTest()
      : path_(testing::TempDir() + "adjoin_" +
              testing::UnitTest::GetInstance()->current_test_info()->name() + ".json") {}
  ~JsonFileTest() override { std::filesystem::remove_all(path_); }

  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

  const std::string path_;
};

TEST(ParseJsonTest, KeepsKeysInTheOrderTheyStand) {
  EXPECT_EQ(parse_json(R"({"z": 1, "a": [true, null], "m": {"k": "v"}})", "x").dump(),
            R"({"z":1,"a":[true,null],"m":{"k":"v"}})");
}

TEST(ParseJsonTest, SaysWhereTheTextBreaks) {
  expect_error(ErrorKind::kData, {"some.json", "not JSON", "byte 11"},
               [] { parse_json(R"({"a": 1 "b": 2})", "some.json"); });
}

TEST(ParseJsonTest, RefusesTextThatEndsTooEarlyOrTooLate) {
  for (const char* text : {"", "   ", "{", "[1, 2", "\"open", "{} {}", "1 2", "{\"a\":}", "[1,]"}) {
    SCOPED_TRACE(text);
    expect_error(ErrorKind::kData, {"x: not JSON"}, [&] { parse_json(text, "x"); });
  }
}

TEST(ParseJsonTest, RefusesWordsAndNumbersThatAreNotJson) {
  for (const char* text : {"NaN", "Infinity", "01", "0x10", "'a'", "+1", "// no\n1", "tru"}) {
    SCOPED_TRACE(text);
    expect_error(ErrorKind::kData, {"x: not JSON"}, [&] { parse_json(text, "x"); });
  }
}

TEST(ParseJsonTest, RefusesBrokenUtf8) {
  expect_error(ErrorKind::kData, {"x: "}, [] { parse_json("\"\xff\"", "x"); });
}

TEST(ParseJsonTest, RefusesANumberNoDoubleHolds) {
  expect_error(ErrorKind::kData, {"x: "}, [] { parse_json("1e400", "x"); });
  expect_error(ErrorKind::kData, {"x: "}, [] { parse_json(R"({"a": [-1e999]})", "x"); });
}

TEST(ParseJsonTest, RefusesAKeyThatStandsTwiceInOneObject) {
  expect_error(ErrorKind::kData, {"x: key \"heads\" stands twice"},
               [] { parse_json(R"({"heads": 1, "depth": 2, "heads": 3})", "x"); });
  expect_error(ErrorKind::kData, {"key \"b\" stands twice"},
               [] { parse_json(R"({"a": [{"b": 1, "b": 1}]})", "x"); });
}

TEST(ParseJsonTest, AcceptsOneKeyInSeveralObjects) {
  const char* text = R"({"a":{"k":1},"b":[{"k":2},{"k":3}],"k":4})";
  EXPECT_EQ(parse_json(text, "x").dump(), text);
}

TEST(ParseJsonTest, AcceptsSixtyFourLevelsAndRefusesMore) {
  const std::string deepest = repeated("[", 64) + repeated("]", 64);
  EXPECT_EQ(parse_json(deepest, "x").dump(), deepest);
  expect_error(ErrorKind::kData, {"x: nests deeper than 64"},
               [] { parse_json(repeated("[", 66) + repeated("]", 66), "x"); });
}

TEST(ParseJsonTest, RefusesAMillionOpenBracketsWithoutRunningOutOfStack) {
  expect_error(ErrorKind::kData, {"nests deeper"}, [] { parse_json(repeated("[", 1000000), "x"); });
  expect_error(ErrorKind::kData, {"nests deeper"},
               [] { parse_json(repeated("{\"a\":", 1000000), "x"); });
}

TEST(ParseJsonTest, RefusesAnObjectOfVeryManyKeys) {  // keeping their order costs quadratic time
  std::string text = "{";
  for (int i = 0; i < 50000; ++i) text += "\"k" + std::to_string(i) + "\":0,";
  text.back() = '}';
  expect_error(ErrorKind::kData, {"x", "10000 keys"}, [&] { parse_json(text, "x"); });
}

TEST_F(JsonFileTest, IsReadAsParsedText) {
  write("{\"a\": [1, 2.5, \"b\"]}\n");
  EXPECT_EQ(read_json_file(path_), Json::parse(R"({"a": [1, 2.5, "b"]})"));
}

TEST_F(JsonFileTest, LongerThanAReadBufferIsReadWhole) {
  write("[" + repeated("1,", 100000) + "1]");
  EXPECT_EQ(read_json_file(path_).size(), 100001U);
}

TEST_F(JsonFileTest, ThatIsMissingIsAnErrorOfTheFile) {
  expect_error(ErrorKind::kIo, {path_, "No such file"}, [&] { read_json_file(path_); });
}

TEST_F(JsonFileTest, ThatIsAFolderIsAnErrorOfTheFile) {
  std::filesystem::create_directory(path_);
  expect_error(ErrorKind::kIo, {path_, "is a folder"}, [&] { read_json_file(path_); });
}

TEST_F(JsonFileTest, ThatIsBrokenIsNamedInTheMessage) {
  write("{\"a\": ");
  expect_error(ErrorKind::kData, {path_, "not JSON"}, [&] { read_json_file(path_); });
}

TEST_F(JsonFileTest, LargerThanAllowedIsRefused) {
  write("[1,2,3,4]");
  EXPECT_EQ(read_json_file(path_, 9).size(), 4U);
  expect_error(ErrorKind::kData, {path_, "larger than 8 bytes"}, [&] { read_json_file(path_, 8); });
}

}  // namespace
}  // namespace adjoin
