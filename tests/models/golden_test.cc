// Our forward passes beside the authors' own code (tests/golden).
#include "adjoin/models/golden.h"

#include "adjoin/core/error.h"
#include "adjoin/cost/cost.h"
#include "support/expect_error.h"
#include "support/seeded_test.h"

namespace adjoin::models {
namespace {

Json golden_file(const std::string& name) {
  return read_json_file(std::string(ADJOIN_GOLDEN_DIR) + "/" + name + ".json");
}

class GoldenTest : public SeededTest, public testing::WithParamInterface<const char*> {
 protected:
  Json golden = golden_file(GetParam());
};

TEST_P(GoldenTest, LogitsAndEveryStageAgreeInFloat64) {
  const GoldenReport report = verify(golden, torch::kCPU, torch::kFloat64);
  EXPECT_LT(report.logits_error(), 1e-7);
  EXPECT_EQ(report.rows.size(), 1 + golden["blocks"].size() + golden["stages"].size());
  for (const GoldenRow& row : report.rows) EXPECT_LT(row.error, 1e-7) << row.name;
}

TEST_P(GoldenTest, LogitsAndEveryStageAgreeInFloat32) {
  const GoldenReport report = verify(golden, torch::kCPU, torch::kFloat32);
  for (const GoldenRow& row : report.rows) EXPECT_LT(row.error, 1e-5) << row.name;
}

TEST_P(GoldenTest, LogitsAreNearInBfloat16) {
  EXPECT_LT(verify(golden, torch::kCPU, torch::kBFloat16).logits_error(), 0.1);
}

TEST_P(GoldenTest, ParametersAndMacsAreExact) {
  EXPECT_TRUE(verify(golden, torch::kCPU, torch::kFloat32).are_counts_equal);
}

TEST_P(GoldenTest, TensorsHaveTheOfficialNamesShapesAndValues) {
  const ModelSpec spec = golden_spec(golden);
  const Weights weights = golden_weights(spec);
  std::map<std::string, const Json*> recorded;
  for (const Json& key : golden["keys"]) {
    if (key["kind"] != "buffer") recorded[key["name"].get<std::string>()] = &key;
  }
  for (const TensorInfo& info : tensors(spec)) {
    const auto found = recorded.find(official_name(spec, info.name));
    ASSERT_NE(found, recorded.end()) << info.name << " is not in the official network";
    const Json& key = *found->second;
    EXPECT_EQ(Json(info.shape()), key["shape"]) << info.name;
    EXPECT_EQ(info.is_trained, key["kind"] == "param") << info.name;
    const auto values = weights.at(info.name);
    EXPECT_NEAR(values.flatten()[0].item<double>(), key["first"].get<double>(), 1e-15) << info.name;
    EXPECT_NEAR(values.sum().item<double>(), key["sum"].get<double>(), 1e-9 * values.numel())
        << info.name;
    recorded.erase(found);
  }
  EXPECT_TRUE(recorded.empty()) << "we lack " << recorded.begin()->first;
}

TEST_P(GoldenTest, ADifferentRecordIsNoticed) {
  golden["logits"][1][3] = golden["logits"][1][3].get<double>() + 1e-3;
  EXPECT_NEAR(verify(golden, torch::kCPU, torch::kFloat64).logits_error(), 1e-3, 1e-6);
  golden["macs"]["parts"]["linear"] = 1;
  EXPECT_FALSE(verify(golden, torch::kCPU, torch::kFloat32).are_counts_equal);
}

INSTANTIATE_TEST_SUITE_P(
    Files, GoldenTest,
    testing::Values("deit_tiny_patch16_224", "swin_tiny_patch4_window7_224", "t2t_vit_14",
                    "vit_small_cfg_img32_patch4_dim64_depth3_heads4",
                    "swin_small_cfg_img32_patch2_window4_dim24_depths2_2_heads2_4"),
    [](const auto& p) { return std::string(p.param); });

// "inner" is recorded from the authors' code, "narrow" by tools/make_narrow_goldens.py.
constexpr const char* kCompressed[] = {
    "deit_tiny_patch16_224_inner_alpha3",
    "swin_tiny_patch4_window7_224_inner_alpha3",
    "t2t_vit_14_inner_alpha2",
    "deit_tiny_patch16_224_narrow_alpha3",
    "swin_tiny_patch4_window7_224_narrow_alpha3",
    "t2t_vit_14_narrow_alpha2",
    "vit_small_cfg_img32_patch4_dim64_depth3_heads4_narrow_alpha2",
    "swin_small_cfg_img32_patch2_window4_dim24_depths2_2_heads2_4_narrow_alpha2"};

class CompressedGoldenTest : public GoldenTest {};

TEST_P(CompressedGoldenTest, LogitsAndCountsOfTheSlicedNetworkAgree) {
  const GoldenReport exact = verify(golden, torch::kCPU, torch::kFloat64);
  for (const GoldenRow& row : exact.rows) EXPECT_LT(row.error, 1e-7) << row.name;
  EXPECT_TRUE(exact.are_counts_equal);
  const GoldenReport rounded = verify(golden, torch::kCPU, torch::kFloat32);
  for (const GoldenRow& row : rounded.rows) EXPECT_LT(row.error, 1e-5) << row.name;
}

INSTANTIATE_TEST_SUITE_P(Files, CompressedGoldenTest, testing::ValuesIn(kCompressed),
                         [](const auto& p) { return std::string(p.param); });

TEST(GoldenRuleTest, RefusesAnUnknownKindOfCompression) {
  Json golden = golden_file(kCompressed[6]);
  golden["compression"]["kind"] = "bogus";
  expect_error(ErrorKind::kData, {"compression", "bogus", "inner", "narrow"},
               [&] { verify(golden, torch::kCPU, torch::kFloat32); });
}

TEST(GoldenRuleTest, FillsTheRecordedValues) {
  EXPECT_DOUBLE_EQ(golden_uniform("input", {1}).item<double>(), -0.80436331468492361);
  EXPECT_DOUBLE_EQ(golden_uniform("norm.weight", {8})[7].item<double>() * 0.1 + 1,
                   0.95215296743401001);
  EXPECT_DOUBLE_EQ(golden_uniform("head.bias", {1000})[999].item<double>() * 0.02,
                   0.0043200653886600769);
}

TEST(GoldenRuleTest, RefusesWhatIsNoGolden) {
  for (const char* text : {"{}", "[]", "3", R"({"family":"resnet","config":{},"model":"x"})",
                           R"({"family":"swin","config":{"depths":3},"model":"x"})"}) {
    try {
      verify(parse_json(text, "test"), torch::kCPU, torch::kFloat32);
      ADD_FAILURE() << text << " was taken";
    } catch (const Error& e) {
      EXPECT_EQ(exit_code(e.kind()) == 3 || exit_code(e.kind()) == 2, true) << e.what();
    }
  }
}

}  // namespace
}  // namespace adjoin::models
