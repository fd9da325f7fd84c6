// convert, extract, predict and cost on files of our own: results, usage and bad input.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>

#include "adjoin/spec/catalog.h"
#include "adjoin/spec/derive.h"
#include "cli/commands.h"
#include "support/expect_error.h"
#include "support/model_files.h"
#include "support/temp_folder.h"

namespace adjoin {
namespace {

class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    write_own_model(vit, spec);
    write_input(images, spec, 3, {1, 2, 9});
  }

  TempFolder folder;
  ModelSpec spec = catalog_spec("vit_mini_28");
  std::string vit = folder / "vit.safetensors";
  std::string images = folder / "images.safetensors";
  std::string small = folder / "small.safetensors";
};

TEST_F(FilesTest, CostOfAFileIsThatOfItsNetwork) {
  EXPECT_EQ(result_of({"cost", vit}), result_of({"cost", "vit_mini_28"}));
  const Json part = result_of({"cost", vit, "--alpha", "4"});
  EXPECT_EQ(part["large"], result_of({"cost", vit}));
  EXPECT_EQ(part["blocks"][0]["heads"], 2);
  EXPECT_EQ(part["blocks"][0]["hidden"], 32);
  EXPECT_NEAR(part["ratio"]["macs"].get<double>(),
              part["macs"].get<double>() / part["large"]["macs"].get<double>(), 1e-12);
}

TEST_F(FilesTest, AnExtractedNetworkIsAModelLikeAnyOther) {
  const Json said = result_of({"extract", vit, small, "--alpha", "4"});
  Json counted = result_of({"cost", small});
  EXPECT_EQ(said["params"], counted["params"]);
  EXPECT_EQ(said["macs"], counted["macs"]);
  EXPECT_EQ(said["large"]["params"], 139018);
  EXPECT_EQ(logits_of(small, images).size(), 3U);
  const std::string smaller = folder / "smaller.safetensors";  // and can be compressed again
  EXPECT_EQ(result_of({"extract", small, smaller, "--alpha", "2"})["blocks"][3]["heads"], 1);
}

TEST_F(FilesTest, AlphaOneGivesTheNetworkBack) {
  for (const std::string geometry : {"kept", "narrow"}) {
    result_of({"extract", vit, small, "--alpha", "1", "--geometry", geometry});
    EXPECT_EQ(logits_of(small, images), logits_of(vit, images));
  }
}

TEST_F(FilesTest, AlphasComeFromAListAFileOrTheSpecOfTheSmallNetwork) {
  const Json listed = result_of({"cost", vit, "--alphas", "1,2,4,8"});
  const std::string list = folder.write("alphas.json", "[1, 2, 4, 8]");
  EXPECT_EQ(result_of({"cost", vit, "--alphas", "@" + list}), listed);
  Choice choice = choice_from_alphas(spec, {2});
  choice.blocks[1].keep = false;
  choice.skips = {{0, 3}};
  const Derived part = derive(spec, choice, Geometry::kKept);
  const std::string architecture =
      folder.write("architecture.json", spec_to_json(part.spec).dump());
  const Json said = result_of({"extract", vit, small, "--alphas", "@" + architecture});
  EXPECT_EQ(said["blocks"].size(), 3U);
  EXPECT_EQ(io::open_model(small).header.spec, part.spec);
}

TEST_F(FilesTest, ImportantHeadsAndUnitsComeFirst) {
  std::map<std::string, Json> logits;
  for (const std::string order : {"none", "magnitude"}) {
    const std::string whole = folder / "whole.safetensors";
    result_of({"extract", vit, whole, "--alpha", "1", "--order", order});
    EXPECT_LT(largest_difference(logits_of(whole, images), logits_of(vit, images)), 1e-5);
    result_of({"extract", vit, small, "--alpha", "4", "--order", order});
    logits[order] = logits_of(small, images);
  }
  EXPECT_GT(largest_difference(logits["none"], logits["magnitude"]), 1e-3);
  const Json said =
      result_of({"extract", vit, small, "--alpha", "4", "--order", "taylor", "--inputs", images});
  EXPECT_EQ(said["order"], "taylor");
  EXPECT_GT(largest_difference(logits["none"], logits_of(small, images)), 1e-3);
}

TEST_F(FilesTest, EqualCommandsGiveEqualFiles) {
  const std::string again = folder / "again.safetensors";
  result_of({"extract", vit, small, "--keep", "0.5", "--order", "magnitude"});
  result_of({"extract", vit, again, "--keep", "0.5", "--order", "magnitude"});
  EXPECT_EQ(read_file(small), read_file(again));
  EXPECT_TRUE(contains(read_file(small), "fnv1a:"));
  EXPECT_FALSE(contains(read_file(small), folder.path()));
}

TEST_F(FilesTest, PredictNamesClassesInOrderOfProbability) {
  const std::string names = folder.write("names.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
  const std::string named = folder / "named.safetensors";
  result_of({"convert", vit, named, "--classes", names});
  const Json predictions =
      result_of({"predict", named, images, "--top", "3", "--batch_size", "2"})["predictions"];
  ASSERT_EQ(predictions.size(), 3U);
  for (const Json& prediction : predictions) {
    ASSERT_EQ(prediction["top"].size(), 3U);
    const auto best = prediction["top"][0]["class"].get<size_t>();
    EXPECT_EQ(prediction["top"][0]["label"], std::string(1, static_cast<char>('a' + best)));
    EXPECT_GE(prediction["top"][0]["probability"], prediction["top"][1]["probability"]);
    const auto logits = prediction["logits"].get<std::vector<double>>();
    EXPECT_EQ(best,
              static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  EXPECT_EQ(predictions[2]["input"], images + "[2]");
  const ProgramResult table = adjoin({"predict", named, images, "--top", "2"});
  EXPECT_TRUE(contains(table.out, "probability")) << table.out;
  const ProgramResult logits = adjoin({"predict", named, images, "--logits"});
  EXPECT_EQ(std::count(logits.out.begin(), logits.out.end(), '\n'), 3) << logits.out;
}

TEST_F(FilesTest, TypesCanBeChangedAndCostHalfTheRoom) {
  const std::string half = folder / "half.safetensors";
  for (const std::string type : {"bf16", "float16"}) {
    result_of({"convert", vit, half, "--dtype", type});
    EXPECT_LT(std::filesystem::file_size(half), 0.6 * std::filesystem::file_size(vit));
    EXPECT_LT(largest_difference(logits_of(half, images), logits_of(vit, images)), 0.1);
  }
}

TEST_F(FilesTest, AnotherImageSizeIsInterpolatedAndSaid) {
  const std::string wide = folder / "wide.safetensors";
  const ProgramResult result = adjoin({"convert", vit, wide, "--set", "model.img_size=42"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "pos_embed is interpolated from 4x4 to 6x6")) << result.err;
}

TEST_F(FilesTest, ANewHeadIsStartedOnlyWhenAsked) {
  const std::string out = folder / "new.safetensors";
  expect_refused(3, {"head.weight is (10, 64), must be (37, 64)", "--reset-head"},
                 {"convert", vit, out, "--set", "model.num_classes=37"});
  EXPECT_FALSE(std::filesystem::exists(out));
  const Json said =
      result_of({"convert", vit, out, "--set", "model.num_classes=37", "--reset-head"});
  EXPECT_EQ(said["notes"].size(), 2U);
  EXPECT_EQ(io::open_model(out).header.spec.num_classes, 37);
}

TEST_F(FilesTest, WrongUsageIsCodeTwo) {
  expect_refused(2, {"--alpha, --alphas or --keep"}, {"extract", vit, small});
  expect_refused(2, {"one of --alpha"}, {"extract", vit, small, "--alpha", "2", "--keep", "0.5"});
  expect_refused(2, {"alpha 3", "8 heads", "legal: 1, 2, 4, 8"},
                 {"extract", vit, small, "--alpha", "3"});
  expect_refused(2, {"narrow", "geometry kept"},
                 {"extract", vit, small, "--alphas", "1,2,2,2", "--geometry", "narrow"});
  expect_refused(2, {"narrow needs"}, {"cost", vit, "--geometry", "narrow"});
  expect_refused(2, {"--geometry", "flat", "kept, narrow"},
                 {"cost", vit, "--alpha", "2", "--geometry", "flat"});
  expect_refused(2, {"\"x\"", "1,2,2,4"}, {"cost", vit, "--alphas", "1,x"});
  expect_refused(2, {"keep is 0"}, {"cost", vit, "--keep", "0"});
  expect_refused(2, {"--alphas is empty"}, {"cost", vit, "--alphas", ""});
  expect_refused(2, {"\"abc\" must be a whole number"}, {"cost", vit, "--alpha", "abc"});
  expect_refused(2, {"\"0\" must be a whole number"}, {"predict", vit, images, "--top", "0"});
  expect_refused(
      2, {"--order", "kept"},
      {"extract", vit, small, "--alpha", "2", "--geometry", "narrow", "--order", "magnitude"});
  expect_refused(2, {"taylor", "--inputs"},
                 {"extract", vit, small, "--alpha", "2", "--order", "taylor"});
  expect_refused(2, {"--inputs is for"},
                 {"extract", vit, small, "--alpha", "2", "--inputs", images});
  expect_refused(2, {".safetensors"}, {"convert", vit, folder / "out.pth"});
  expect_refused(2, {"--layout", "keras"}, {"convert", vit, small, "--layout", "keras"});
  expect_refused(2, {"--dtype", "int8"}, {"convert", vit, small, "--dtype", "int8"});
  expect_refused(2, {"leave --model out"}, {"predict", vit, images, "--model", "vit_mini_32"});
  for (const char* wrong : {"nan", "-1", "x", "2"}) {
    expect_refused(
        2, {"--max-bad-images", "must be a number from 0 to 1"},
        {"evaluate", vit, "--data", "synthetic:1x28x28x10x4", "--max-bad-images", wrong});
  }
  expect_refused(2, {"\"0\" must be a number"}, {"verify", vit, "--tolerance", "0"});
  EXPECT_FALSE(std::filesystem::exists(small));
}

TEST_F(FilesTest, BadFilesAreCodeThree) {
  expect_refused(3, {"nothing.pth", "No such file"}, {"predict", folder / "nothing.pth", images});
  expect_refused(3, {"empty.pth"}, {"cost", folder.write("empty.pth", "")});
  expect_refused(3, {"text.pth"},
                 {"cost", folder.write("text.pth", "not a model at all, only text")});
  std::string bytes = read_file(vit);
  bytes.resize(bytes.size() / 2);
  expect_refused(3, {"cut.safetensors"},
                 {"predict", folder.write("cut.safetensors", bytes), images});
  expect_refused(3, {"vit.safetensors", "no tensor \"input\""}, {"predict", vit, vit});
  expect_refused(3, {"note.txt", "JPEG"}, {"predict", vit, folder.write("note.txt", "hello")});
  expect_refused(3, {"is a folder"}, {"predict", folder.path(), images});
  std::filesystem::create_symlink(folder / "loop.pth", folder / "loop.pth");
  expect_refused(3, {"loop.pth"}, {"cost", folder / "loop.pth"});
  ASSERT_EQ(mkfifo((folder / "pipe.json").c_str(), 0600), 0);
  expect_refused(3, {"pipe.json", "not a regular file"}, {"cost", folder / "pipe.json"});
  expect_refused(3, {"/dev/zero", "not a regular file"},
                 {"convert", vit, small, "--classes", "/dev/zero"});
  expect_refused(3, {"nowhere"}, {"convert", vit, folder / "nowhere/out.safetensors"});
  expect_refused(3, {"names.txt", "1 lines", "10 classes"},
                 {"convert", vit, small, "--classes", folder.write("names.txt", "a\n")});
  expect_refused(3, {"latin.txt", "line 2", "no UTF-8"},
                 {"convert", vit, small, "--classes", folder.write("latin.txt", "a\n\xe9\n")});
  ModelSpec other = spec;
  other.img_size = 35;
  expect_refused(3, {"input is (2, 1, 35, 35)", "(images, 1, 28, 28)"},
                 {"predict", vit, write_input(folder / "wrong.safetensors", other, 2)});
  expect_refused(3, {"labels must be 2 integers from 0 to 9"},
                 {"predict", vit, write_input(folder / "labels.safetensors", spec, 2, {3, 10})});
}

TEST_F(FilesTest, ANetworkThatAnswersNanIsANumericFailure) {
  std::string bytes = read_file(vit);
  const size_t header = 8 + *reinterpret_cast<const uint64_t*>(bytes.data());
  for (size_t i = header; i + 4 <= bytes.size(); i += 4) bytes.replace(i, 4, "\0\0\xc0\x7f", 4);
  expect_refused(4, {"NaN"}, {"predict", folder.write("nan.safetensors", bytes), images});
}

TEST_F(FilesTest, NumbersThatTheirTypeCannotHoldAreANumericFailure) {
  const std::string big = folder / "big.safetensors";
  std::string bytes = read_file(vit);
  const size_t header = 8 + *reinterpret_cast<const uint64_t*>(bytes.data());
  bytes.replace(header, 4, "\0\x24\x74\x49", 4);  // 1e6 in float32
  folder.write("big.safetensors", bytes);
  expect_refused(4, {"too large for Half"}, {"convert", big, small, "--dtype", "float16"});
  EXPECT_FALSE(std::filesystem::exists(small));
  for (size_t i = header; i + 4 <= bytes.size(); i += 4) bytes.replace(i, 4, "\0\0\xc0\x7f", 4);
  folder.write("big.safetensors", bytes);  // all NaN
  expect_refused(4, {"importance"},
                 {"extract", big, small, "--alpha", "2", "--order", "magnitude"});
}

TEST_F(FilesTest, NamesAfterTwoDashesAreNoFlags) {
  const std::string odd = "--my_model.safetensors";
  const ProgramResult result = adjoin({"cost", "--", odd});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(contains(result.err, odd)) << result.err;
}

TEST_F(FilesTest, WritingOverTheFileThatIsReadIsSafe) {
  const Json before = logits_of(vit, images);
  result_of({"convert", vit, vit});
  EXPECT_EQ(logits_of(vit, images), before);
}

}  // namespace
}  // namespace adjoin
