// adjoin inspect from end to end: what it prints, the page it writes, refusals.
#include <cmath>
#include <fstream>
#include <sstream>

#include "cli/commands.h"
#include "support/python_folder.h"
#include "support/temp_folder.h"

namespace adjoin {
namespace {

class InspectCommandTest : public testing::Test {
 protected:
  std::string read(const std::string& name) const {
    std::ifstream file(folder / name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  TempFolder folder;
};

TEST_F(InspectCommandTest, SaysWhatTheContractOfItsJsonNames) {
  const Json result = result_of({"inspect", "vit_mini_28", "--batch-size", "4"});
  EXPECT_EQ(result.at("model"), "vit_mini_28");
  EXPECT_EQ(result.at("batch"), 4);
  ASSERT_EQ(result.at("layers").size(), 6U);  // tokens, four blocks, norm
  for (const Json& layer : result.at("layers")) {
    for (const char* key :
         {"name", "residual_frobenius", "residual_composite", "token_cosine", "effective_rank",
          "attention_entropy", "activation_norm", "gradient_norm"}) {
      EXPECT_TRUE(layer.contains(key)) << key;
    }
  }
  EXPECT_EQ(result.at("layers").at(1).at("attention_entropy").size(), 8U);
}

TEST_F(InspectCommandTest, TheSameSeedGivesTheSameNumbers) {
  const Words words = {"inspect", "t2t_mini_28", "--batch-size", "2", "--seed", "3"};
  EXPECT_EQ(result_of(words), result_of(words));
  EXPECT_NE(result_of(words), result_of({"inspect", "t2t_mini_28", "--batch-size", "2"}));
}

TEST_F(InspectCommandTest, LooksAtImagesWithLabels) {
  const Json result = result_of({"inspect", "vit_mini_28", "--data", "synthetic:1x28x28x10"});
  EXPECT_EQ(result.at("data"), "synthetic:1x28x28x10");
  EXPECT_GT(result.at("loss").get<double>(), 0);
  EXPECT_GT(result.at("layers").at(2).at("weight_gradient_norm").get<double>(), 0);
}

TEST_F(InspectCommandTest, WritesAPageWithEverythingItWasAskedFor) {
  const ProgramResult result =
      adjoin({"inspect", "vit_mini_28", "vit_mini_28", "--set", "model.shortcut=circulant",
              "--batch-size", "4", "--laws", "--paths", "--depth", "--output", folder / "out"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"blocks.3", "Theorem 2.2", "S.8", "earth mover's distance",
                           "attention + skip + shortcut", "run again", "random projections"}) {
    EXPECT_TRUE(contains(result.out, part)) << part;
  }
  const Json written = parse_json(read("out/inspect.json"), "inspect.json");
  for (const Json& row : written.at("laws").at("bounds")) {
    EXPECT_TRUE(row.at("holds").get<bool>()) << row.dump();
  }
  EXPECT_LT(written.at("paths").at("sum_error").get<double>(), 1e-10);
  EXPECT_EQ(written.at("compare").at("agreement"), 100);
  const std::string page = read("out/inspect.html");
  EXPECT_TRUE(contains(page, "vit_mini_28"));
  EXPECT_TRUE(contains(page, "<svg"));
}

TEST_F(InspectCommandTest, LooksAtEveryFamily) {
  for (const char* model : {"swin_mini_28", "t2t_mini_28"}) {
    const Json result =
        result_of({"inspect", model, "--batch-size", "2", "--laws", "--depth", "--alpha", "2"});
    for (const Json& row : result.at("laws").at("bounds")) {
      EXPECT_TRUE(row.at("holds").get<bool>()) << model << row.dump();
    }
  }
}

TEST_F(InspectCommandTest, AgreesWithNumpyOnTheGoldenWeights) {
  const ProgramResult result =
      run_program(kPython, {std::string(ADJOIN_GOLDEN_DIR) + "/../../tools/inspect_reference.py",
                            "--adjoin", ADJOIN_BINARY, "--folder", folder / "golden"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST_F(InspectCommandTest, RefusesWhatItCannotLookAt) {
  folder.write("notes.safetensors", "not a model");
  expect_refused(kBadData, {"notes.safetensors"}, {"inspect", folder / "notes.safetensors"});
  expect_refused(kUsage, {"--dtype", "bf16"}, {"inspect", "vit_mini_28", "--dtype", "bf16"});
  expect_refused(kUsage, {"alpha", "3"}, {"inspect", "vit_mini_28", "--alpha", "3"});
  expect_refused(
      kUsage, {"one token"},
      {"inspect", "swin_mini_32", "--set", "model.img_size=4", "--set", "model.window=1"});
  expect_refused(kUsage, {"--data", "1x28x28", "3x32x32"},
                 {"inspect", "vit_mini_28", "vit_mini_32"});
  expect_refused(kBadData, {"12", "10"},
                 {"inspect", "vit_mini_28", "--data", "synthetic:1x28x28x12"});
  expect_refused(kUsage, {"windows"}, {"inspect", "swin_mini_28", "--paths"});
  expect_refused(
      kBadData, {"12", "20"},
      {"inspect", "vit_mini_28", "--data", "synthetic:1x28x28x10x12", "--batch-size", "20"});
}

}  // namespace
}  // namespace adjoin
