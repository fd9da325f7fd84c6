// The program given nonsense: one line that helps, on standard error, and the right exit code.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "adjoin/core/json.h"
#include "adjoin/spec/catalog.h"
#include "support/expect_error.h"
#include "support/run_program.h"

namespace adjoin {
namespace {

using Words = std::vector<std::string>;

void expect_failure(int exit_code, const Words& args,
                    std::initializer_list<std::string_view> parts) {
  const ProgramResult result = run_program(ADJOIN_BINARY, args);
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("adjoin: error: ")) << result.err;
  EXPECT_TRUE(result.err.ends_with("\n")) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  for (const std::string_view part : parts) {
    EXPECT_TRUE(contains(result.err, part)) << "\"" << part << "\" is not in: " << result.err;
  }
}

TEST(UsageErrorTest, NamesAnUnknownCommandAndTheNearestOrAll) {
  expect_failure(kUsage, {"modles"}, {"unknown command \"modles\"", "did you mean models"});
  expect_failure(kUsage, {"fly"},
                 {"unknown command \"fly\"",
                  "models, cost, extract, convert, export, train, compress, search, rank, inspect, "
                  "emd, evaluate, "
                  "predict, bench, report, "
                  "verify"});
  expect_failure(kUsage, {"--fly"}, {"unknown command \"--fly\""});
  expect_failure(kUsage, {""}, {"unknown command \"\""});
}

TEST(UsageErrorTest, NamesAnUnknownModelAndTheNearest) {
  expect_failure(kUsage, {"cost", "deit_tny_patch16_224"},
                 {"\"deit_tny_patch16_224\"", "did you mean deit_tiny_patch16_224"});
  expect_failure(kUsage, {"models", "swin_tiny"}, {"swin_tiny_patch4_window7_224"});
  expect_failure(kUsage, {"cost", "resnet50"}, {"unknown model \"resnet50\"", "vit_mini_28"});
  expect_failure(kUsage, {"cost", ""}, {"MODEL is empty"});
}

TEST(UsageErrorTest, NamesAnUnknownFlag) {
  expect_failure(kUsage, {"cost", "vit_mini_28", "--frob"}, {"cost: ", "--frob", "--help"});
  expect_failure(kUsage, {"models", "--frob"}, {"models: ", "--frob"});
  expect_failure(kUsage, {"cost", "vit_mini_28", "-x"}, {"-x"});
}

TEST(UsageErrorTest, NamesAnArgumentThatIsMissingOrTooMany) {
  expect_failure(kUsage, {"cost"}, {"cost: ", "MODEL", "--help"});
  expect_failure(kUsage, {"cost", "vit_mini_28", "vit_mini_32"}, {"vit_mini_32"});
  expect_failure(kUsage, {"cost", "vit_mini_28", "--set"}, {"--set"});
  expect_failure(kUsage, {"models", "--set", "model.depth=2"}, {"--set and --model need a MODEL"});
  expect_failure(kUsage, {"verify"}, {"verify: ", "GOLDEN"});
}

TEST(MemoryErrorTest, TooLittleAddressSpaceIsSaidBeforeLibTorchIsLoaded) {
  const ProgramResult result =
      run_program("/bin/sh", {"-c", "ulimit -v 900000; exec \"$0\" verify x.json", ADJOIN_BINARY});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_TRUE(result.err.starts_with("adjoin: error: out of memory: LibTorch needs")) << result.err;
}

TEST(UsageErrorTest, NamesASetThatIsNoAssignmentToTheModel) {
  expect_failure(kUsage, {"cost", "vit_mini_28", "--set", "model.heads"},
                 {"--set: \"model.heads\" must be model.KEY=VALUE"});
  expect_failure(kUsage, {"cost", "vit_mini_28", "--set", "heads=3"}, {"--set", "heads", "model."});
  expect_failure(kUsage, {"cost", "vit_mini_28", "--set", ""}, {"--set is empty"});
}

TEST(ConfigErrorTest, NamesAnUnknownKeyOfSet) {
  expect_failure(kUsage, {"cost", "vit_mini_28", "--set", "model.detph=3"},
                 {"unknown key model.detph", "did you mean depth"});
  expect_failure(kUsage, {"cost", "vit_mini_28", "--set", "model.blocks.9.heads=3"},
                 {"model.blocks: no entry \"9\""});
}

TEST(ConfigErrorTest, NamesAValueThatIsNotLegal) {
  expect_failure(kUsage, {"cost", "vit_mini_28", "--set", "model.heads=0"},
                 {"model.heads: is \"0\", must be a positive integer"});
  expect_failure(kUsage, {"cost", "vit_mini_28", "--set", "model.blocks.0.heads=0"},
                 {"model.blocks.0.heads: is 0, must be 1 to"});
  expect_failure(kUsage, {"cost", "vit_mini_28", "--set", "model.heads=7"},
                 {"model.heads: 7", "embed_dim 64", "1, 2, 4, 8, 16, 32, 64"});
}

TEST(ConfigErrorTest, NamesTheLegalSizesWhenAnImageDoesNotFit) {
  expect_failure(kUsage, {"cost", "vit_mini_28", "--set", "model.img_size=30"},
                 {"model.img_size: 30", "patch_size 7", "28 or 35"});
  expect_failure(
      kUsage, {"cost", "swin_tiny_patch4_window7_224", "--set", "model.img_size=256"},
      {"model.img_size: 256", "window 7", "224 or 448", "legal windows at 256: 2, 4, 8"});
}

TEST(ConfigErrorTest, NamesANumberThatIsTooLarge) {
  for (const char* value : {"99999999999", "1e30", "1e400", "18446744073709551616"}) {
    for (const char* key : {"img_size", "depth", "blocks.0.hidden"}) {
      expect_failure(kUsage,
                     {"cost", "vit_mini_28", "--set", std::string("model.") + key + "=" + value},
                     {std::string("model.") + key, "must be"});
    }
  }
}

TEST(ErrorLineTest, StaysOneLineWhateverTheArgumentHolds) {
  expect_failure(kUsage, {"a\nb"}, {"unknown command"});
  expect_failure(kUsage, {"cost", "a\nb"}, {"unknown model"});
  expect_failure(kUsage, {"cost", "vit_mini_28", "--a\nb"}, {"cost: "});
  expect_failure(kUsage, {"cost", "vit_mini_28", "--set", "a\nb"}, {"--set"});
  expect_failure(kUsage, {"cost", "vit_mini_28", "--set", "model.a\nb=1"}, {"unknown key"});
  expect_failure(kUsage, {"cost", "vit_mini_28", "--set", "model.heads=1\n2"}, {"model.heads"});
  expect_failure(kBadData, {"cost", "no\nsuch.json"}, {"such.json"});
}

TEST(ErrorLineTest, IsWrittenForArgumentsThatAreNotUtf8) {
  expect_failure(kUsage, {"cost", "\xff"}, {"unknown model"});
  expect_failure(kUsage, {"cost", "vit_mini_28", "--set", "model.pool=\xff"},
                 {"model.pool", "token, avg"});
}

TEST(ErrorLineTest, OrGoodJsonComesOfANameThatIsNotUtf8) {
  const ProgramResult result =
      run_program(ADJOIN_BINARY, {"cost", "vit_mini_28", "--json", "--set", "model.name=\xff"});
  if (result.exit_code == 0) {
    EXPECT_EQ(parse_json(result.out, "stdout")["params"], 139018);
  } else {
    EXPECT_EQ(result.exit_code, kUsage) << result.err;
  }
}

TEST(ErrorLineTest, IsWrittenWhenTheOutputCannotBe) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  const ProgramResult result =
      run_program("/bin/sh", {"-c", "exec \"$0\" models > /dev/full", ADJOIN_BINARY});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_TRUE(result.err.starts_with("adjoin: error: ")) << result.err;
}

class BadFileTest : public testing::Test {
 protected:
  BadFileTest()
      : path_(testing::TempDir() + "adjoin_bad_" + std::to_string(getpid()) + "_" +
              testing::UnitTest::GetInstance()->current_test_info()->name() + ".json") {}
  ~BadFileTest() override { std::filesystem::remove_all(path_); }

  void expect_refused(const std::string& text, std::initializer_list<std::string_view> parts) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << text;
    expect_failure(kBadData, {"cost", path_}, {path_ + ": "});
    expect_failure(kBadData, {"models", path_}, parts);
  }

  /// The text of a good spec but for what `change` does to it.
  static std::string spec_text(const std::function<void(Json&)>& change) {
    Json json = spec_to_json(catalog_spec("vit_mini_28"));
    change(json);
    return json.dump(1);
  }

  /// The text of a good spec with `replacement` for its image size, be it JSON or not.
  static std::string with_size(const std::string& replacement) {
    std::string text = spec_text([](Json& json) { json["img_size"] = 424242; });
    return text.replace(text.find("424242"), 6, replacement);
  }

  const std::string path_;
};

TEST_F(BadFileTest, IsMissing) {
  expect_failure(kBadData, {"cost", path_}, {path_, "No such file"});
  expect_failure(kBadData, {"verify", path_}, {path_, "No such file"});
}

TEST_F(BadFileTest, IsAFolder) {
  std::filesystem::create_directory(path_);
  expect_failure(kBadData, {"cost", path_}, {path_, "is a folder"});
}

TEST_F(BadFileTest, IsNotJson) {
  expect_refused("", {"not JSON"});
  expect_refused("hello", {"not JSON"});
  expect_refused(std::string("PK\x03\x04\0\0\0", 7), {"not JSON"});
  expect_refused(spec_text([](Json&) {}) + "}", {"not JSON"});
}

TEST_F(BadFileTest, EndsTooEarlyAtAnyByte) {
  const std::string whole = spec_text([](Json&) {});
  for (size_t size = 1; size < whole.size(); size += 97) {
    expect_refused(whole.substr(0, size), {"not JSON"});
  }
}

TEST_F(BadFileTest, IsJsonButNoObject) {
  expect_refused("[]", {"must be an object"});
  expect_refused("null", {"must be an object"});
}

TEST_F(BadFileTest, LacksAField) {
  expect_refused(spec_text([](Json& json) { json.erase("embed_dim"); }),
                 {"model: field \"embed_dim\" is missing"});
  expect_refused(spec_text([](Json& json) { json["blocks"][2].erase("hidden"); }),
                 {"model.blocks.2: field \"hidden\" is missing"});
}

TEST_F(BadFileTest, HasAFieldTooMany) {
  expect_refused(spec_text([](Json& json) { json["num_clases"] = 3; }),
                 {"unknown field \"num_clases\"", "did you mean num_classes"});
  expect_refused(spec_text([](Json& json) { json["a\nb"] = 3; }), {"unknown field"});
}

TEST_F(BadFileTest, HasAFieldOfTheWrongType) {
  expect_refused(with_size("\"28\""), {"model.img_size: is \"28\", must be an integer"});
  expect_refused(with_size("28.5"), {"model.img_size: is 28.5, must be an integer"});
  expect_refused(with_size("null"), {"model.img_size: is null"});
  expect_refused(with_size("[28]"), {"model.img_size: is a list"});
}

TEST_F(BadFileTest, NamesAKeyTwice) {
  expect_refused(with_size("28, \"img_size\": 28"), {"\"img_size\" stands twice"});
  expect_refused(with_size("28, \"a\\nb\": 1, \"a\\nb\": 1"), {"stands twice"});
}

TEST_F(BadFileTest, NestsTooDeep) {
  expect_refused(with_size(std::string(100000, '[') + std::string(100000, ']')), {"nests deeper"});
  expect_refused(std::string(1000000, '['), {"nests deeper"});
}

TEST_F(BadFileTest, HoldsHugeNumbers) {
  for (const char* number : {"99999999999999999999", "9223372036854775807", "-9223372036854775809",
                             "18446744073709551615", "1e308", "-1"}) {
    expect_refused(with_size(number), {"model.img_size: is ", "must be"});
  }
}

TEST_F(BadFileTest, HoldsANumberNoDoubleHolds) { expect_refused(with_size("1e400"), {path_}); }

TEST_F(BadFileTest, SaysWhatNoNetworkCanBe) {
  expect_refused(with_size("30"), {"model.img_size: 30", "28 or 35"});
  expect_refused(spec_text([](Json& json) { json["blocks"] = Json::array(); }), {"0 blocks"});
  expect_refused(spec_text([](Json& json) { json["family"] = "resnet"; }),
                 {"model.family", "vit, t2t, swin"});
}

}  // namespace
}  // namespace adjoin
