// adjoin verify: the command that loads LibTorch.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "adjoin/core/json.h"
#include "support/expect_error.h"
#include "support/run_program.h"

namespace adjoin {
namespace {

const std::string kGolden =
    std::string(ADJOIN_GOLDEN_DIR) + "/vit_small_cfg_img32_patch4_dim64_depth3_heads4.json";

TEST(VerifyCommandTest, ReportsEveryErrorAsJson) {
  const ProgramResult result =
      run_program(ADJOIN_BINARY, {"verify", kGolden, "--dtype", "float64", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json report = parse_json(result.out, "stdout");
  EXPECT_EQ(report["dtype"], "float64");
  ASSERT_EQ(report["results"].size(), 1U);
  EXPECT_TRUE(report["results"][0]["ok"].get<bool>());
  EXPECT_LT(report["results"][0]["errors"]["logits"].get<double>(), 1e-7);
  EXPECT_EQ(report["results"][0]["errors"].size(), 6U);  // logits, patch_embed, 3 blocks, norm
}

TEST(VerifyCommandTest, ADifferenceIsANumericFailure) {
  Json golden = read_json_file(kGolden);
  golden["logits"][0][0] = golden["logits"][0][0].get<double>() + 0.01;
  const auto path = std::filesystem::temp_directory_path() /
                    ("adjoin_verify_" + std::to_string(getpid()) + ".json");
  std::ofstream(path) << golden.dump();
  const ProgramResult result = run_program(ADJOIN_BINARY, {"verify", path.string()});
  std::filesystem::remove(path);
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_TRUE(contains(result.out, "FAILED")) << result.out;
  EXPECT_TRUE(contains(result.err, "does not agree")) << result.err;
}

TEST(VerifyCommandTest, ACompressedGoldenIsOfAPartOfTheNetwork) {
  const std::string path =
      std::string(ADJOIN_GOLDEN_DIR) + "/deit_tiny_patch16_224_inner_alpha3.json";
  const ProgramResult result = run_program(ADJOIN_BINARY, {"verify", path});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "deit_tiny_patch16_224 (kept alpha 3)")) << result.out;
}

TEST(VerifyCommandTest, UnknownDevicesAndTypesAreUsageErrors) {
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--device", "tpu"},
                                                {"--device", "cuda:x"},
                                                {"--dtype", "fp8"},
                                                {"--tolerance", "-1"}}) {
    std::vector<std::string> args = {"verify", kGolden};
    args.insert(args.end(), flags.begin(), flags.end());
    const ProgramResult result = run_program(ADJOIN_BINARY, args);
    EXPECT_EQ(result.exit_code, 2) << flags[1] << ": " << result.err;
    EXPECT_TRUE(contains(result.err, flags[0].substr(2))) << result.err;
  }
}

/// The OpenMP runtime says how it waits when asked to show its settings.
class WaitPolicyTest : public testing::Test {
 protected:
  void SetUp() override { setenv("OMP_DISPLAY_ENV", "true", 1); }
  void TearDown() override {
    unsetenv("OMP_DISPLAY_ENV");
    setenv("OMP_WAIT_POLICY", "passive", 1);  // as the tests themselves run
  }
};

TEST_F(WaitPolicyTest, WaitingThreadsSleepUnlessTheUserSaysOtherwise) {
  unsetenv("OMP_WAIT_POLICY");
  EXPECT_TRUE(
      contains(run_program(ADJOIN_BINARY, {"verify", kGolden}).err, "OMP_WAIT_POLICY = 'PASSIVE'"));
  setenv("OMP_WAIT_POLICY", "active", 1);
  EXPECT_TRUE(
      contains(run_program(ADJOIN_BINARY, {"verify", kGolden}).err, "OMP_WAIT_POLICY = 'ACTIVE'"));
}

}  // namespace
}  // namespace adjoin
