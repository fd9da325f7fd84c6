// Checkpoints as PyTorch's users have them, through convert, extract, predict and cost.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "adjoin/spec/catalog.h"
#include "adjoin/spec/derive.h"
#include "cli/commands.h"
#include "support/expect_error.h"
#include "support/model_files.h"
#include "support/python_folder.h"

namespace adjoin {
namespace {

class CheckpointTest : public testing::Test {
 protected:
  static const PythonFolder& files() {
    static const PythonFolder folder("cli/write_checkpoints.py", "torch, numpy, PIL");
    return folder;
  }

  void SetUp() override {
    if (!files().missing().empty()) GTEST_SKIP() << files().missing();
    for (const Json& entry : read_json_file(files() / "expected.json")) {
      expected[entry["file"]] = entry;
    }
  }

  std::string path(const std::string& name) const { return files() / name; }
  Words args(const std::string& name) const { return expected.at(name)["args"].get<Words>(); }
  std::string input(const std::string& name) const { return path(expected.at(name)["input"]); }

  std::map<std::string, Json> expected;
  TempFolder folder;
};

TEST_F(CheckpointTest, EveryKindOfFileGivesTheLogitsOfPyTorch) {
  EXPECT_EQ(expected.size(), 16U);
  for (const auto& [name, entry] : expected) {
    SCOPED_TRACE(name);
    const Json logits = logits_of(path(name), input(name), args(name));
    EXPECT_LT(largest_difference(logits, entry["logits"]), 1e-5);
  }
}

TEST_F(CheckpointTest, ConvertedFilesSayWhatTheyAreAndComputeTheSame) {
  for (const std::string name : {"legacy.pth", "bf16.pth", "t2t.pth.tar", "swin_official.pth"}) {
    SCOPED_TRACE(name);
    for (const std::string layout : {"timm", "official"}) {
      const std::string out = folder / (name + ".safetensors");
      const Json said = result_of({"convert", path(name), out, "--layout", layout}, args(name));
      EXPECT_EQ(said["file"], out);
      EXPECT_EQ(logits_of(out, input(name)), logits_of(path(name), input(name), args(name)));
      const ProgramResult sound =
          run_program(kPython, {ADJOIN_GOLDEN_DIR "/../io/safetensors_check.py", "check", out});
      EXPECT_EQ(sound.exit_code, 0) << sound.out << sound.err;
      if (!name.starts_with("swin")) break;
    }
  }
}

TEST_F(CheckpointTest, AnIndependentReaderAgreesAndItsFilesComeBackBitForBit) {
  const std::string ours = folder / "ours.safetensors";
  const std::string theirs = folder / "theirs.safetensors";
  const std::string again = folder / "again.safetensors";
  const std::string check = ADJOIN_GOLDEN_DIR "/../io/safetensors_check.py";
  const auto dump = [&](const std::string& file) {
    const ProgramResult result = run_program(kPython, {check, "dump", file});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return parse_json(result.out, file);
  };
  result_of({"convert", path("swin_timm.pth"), ours}, args("swin_timm.pth"));
  ASSERT_EQ(run_program(kPython, {check, "rewrite", ours, theirs}).exit_code, 0);
  result_of({"convert", theirs, again});
  Json before = dump(ours), after = dump(again);
  EXPECT_EQ(nlohmann::json(before["tensors"]), nlohmann::json(after["tensors"]));
  EXPECT_EQ(before["metadata"]["adjoin.spec"], after["metadata"]["adjoin.spec"]);
}

TEST_F(CheckpointTest, ASmallNetworkLoadsInPlainPyTorch) {
  for (const std::string name : {"bare.pth", "distilled.pth"}) {
    for (const Words& choice : {Words{"--alpha", "3"}, Words{"--keep", "0.4"},
                                Words{"--alpha", "3", "--geometry", "narrow"},
                                Words{"--alpha", "1", "--set", "model.pool=avg"}}) {
      const std::string small = folder / "small.safetensors";
      Words all = args(name);
      all.insert(all.end(), choice.begin(), choice.end());
      result_of({"extract", path(name), small}, all);
      const ProgramResult result = run_program(
          kPython, {ADJOIN_GOLDEN_DIR "/../../examples/load_in_pytorch.py", small, input(name)});
      ASSERT_EQ(result.exit_code, 0) << result.err;
      const Json logits = parse_json(result.out, "example")["logits"];
      EXPECT_LT(largest_difference(logits, logits_of(small, input(name))), 1e-5);
    }
  }
}

TEST_F(CheckpointTest, NetworksAreRecognisedAndHubFoldersRead) {
  for (const std::string name : {"recognised.pth", "hub"}) {
    const ProgramResult known = adjoin({"cost", path(name), "--json"});
    ASSERT_EQ(known.exit_code, 0) << known.err;
    EXPECT_EQ(parse_json(known.out, "stdout")["params"], 4249354) << name;
  }
  const ProgramResult told = adjoin({"cost", path("recognised.pth")});
  EXPECT_TRUE(contains(told.err, "recognised as vit_mini_32")) << told.err;
  const ProgramResult hub = adjoin({"predict", path("hub"), path("image.png"), "--top", "1"});
  EXPECT_EQ(hub.exit_code, 0) << hub.err;
  EXPECT_TRUE(contains(hub.out, "a dog")) << hub.out;  // every class of that folder is a dog
}

TEST_F(CheckpointTest, ImageFilesArePreprocessedAsTheModelSays) {
  for (const std::string image : {"image.png", "image.jpg"}) {
    const Json from_file = logits_of(path("hub"), path(image));
    const Json from_tensor = logits_of(path("hub"), path(image + ".safetensors"));
    EXPECT_LT(largest_difference(from_file, from_tensor), 1e-5) << image;
  }
}

TEST_F(CheckpointTest, ASmallNetworkWithoutSomeBlocksLoadsInPlainPyTorch) {
  ModelSpec large = catalog_spec("vit_mini_28");
  Choice choice = choice_from_alphas(large, {2});
  choice.blocks[1].keep = false;
  choice.skips = {{0, 2}, {0, 3}};
  const std::string whole = write_own_model(folder / "whole.safetensors", large);
  const std::string images = write_input(folder / "x.safetensors", large, 2);
  const std::string architecture = folder.write(
      "architecture.json", spec_to_json(derive(large, choice, Geometry::kKept).spec).dump());
  const std::string small = folder / "small.safetensors";
  result_of({"extract", whole, small, "--alphas", "@" + architecture});
  const ProgramResult result =
      run_program(kPython, {ADJOIN_GOLDEN_DIR "/../../examples/load_in_pytorch.py", small, images});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(
      largest_difference(parse_json(result.out, "example")["logits"], logits_of(small, images)),
      1e-5);
}

TEST_F(CheckpointTest, AFileThatCallsTheShellIsRefusedAndNothingRuns) {
  const ProgramResult result =
      adjoin({"predict", path("evil.pth"), input("bare.pth")}, args("bare.pth"));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(contains(result.err, "calls posix.system")) << result.err;
  EXPECT_FALSE(std::filesystem::exists(path("marker")));
}

TEST_F(CheckpointTest, AWrongModelIsRefusedWithEveryNameThatDoesNotFit) {
  const ProgramResult result =
      adjoin({"predict", path("bare.pth"), input("bare.pth"), "--model", "deit_tiny_patch16_224"});
  EXPECT_EQ(result.exit_code, 3);
  for (const char* part : {"bare.pth: does not fit deit_tiny_patch16_224", "missing",
                           "blocks.2-11.norm1.weight", "cls_token is (1, 1, 48)"}) {
    EXPECT_TRUE(contains(result.err, part)) << result.err;
  }
  const ProgramResult stranger = adjoin({"cost", path("bare.pth")});
  EXPECT_EQ(stranger.exit_code, 3);
  EXPECT_TRUE(contains(stranger.err, "--model")) << stranger.err;
}

}  // namespace
}  // namespace adjoin
