// Every combination of norm, shortcut and mixer on the small networks: builds, costs what it says,
// has finite gradients, derives, comes back from a file and goes out to ONNX.
#include "support/combinations.h"

#include "adjoin/io/onnx/export.h"
#include "adjoin/models/load.h"
#include "adjoin/models/onnx_run.h"
#include "adjoin/models/slice.h"
#include "models/laws.h"
#include "support/seeded_test.h"
#include "support/temp_folder.h"

namespace adjoin::models {
namespace {

class CombinationsTest : public SeededTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    specs = combinations(GetParam());
    ASSERT_GE(specs.size(), 4U * 3U * 4U);
  }

  std::vector<ModelSpec> specs;
  TempFolder folder;
};

TEST_P(CombinationsTest, RunAsTheirTablesSay) {
  for (const ModelSpec& spec : specs) {
    SCOPED_TRACE(spec.name);
    expect_laws(spec);
    if (HasFailure()) return;
  }
}

TEST_P(CombinationsTest, HaveSmallNetworksInside) {
  const torch::NoGradGuard no_grad;
  for (const ModelSpec& spec : specs) {
    const Weights weights = init(spec, 0);
    const auto images = images_for(spec, 2);
    for (const Geometry geometry : {Geometry::kKept, Geometry::kNarrow}) {
      const Derived small = derive(spec, choice_from_alphas(spec, {2}), geometry);
      EXPECT_LT(cost(small.spec).macs.total(), cost(spec).macs.total()) << spec.name;
      const auto seen = forward(small.spec, views(small, weights), images).logits();
      EXPECT_TRUE(torch::equal(seen, forward(small.spec, copies(small, weights), images).logits()))
          << spec.name;
    }
  }
}

TEST_P(CombinationsTest, ComeBackFromAFileAndGoOutToOnnx) {
  const torch::NoGradGuard no_grad;
  for (const ModelSpec& spec : specs) {
    const io::ModelHeader header{spec, {}, default_preprocessing(spec), {}};
    const std::string path = folder / "m.safetensors";
    save(path, header, init(spec, 1));
    const Model model = load(path);
    ASSERT_EQ(model.header.spec, spec);
    const auto images = images_for(spec, 2);
    const auto wanted = forward(spec, model.weights, images).logits();
    EXPECT_TRUE(torch::equal(wanted, forward(spec, init(spec, 1), images).logits())) << spec.name;
    if (!io::has_onnx()) continue;
    const std::string graph = folder / "m.onnx";
    io::export_onnx(graph, header, [&](const std::string& name) {
      const auto values = model.weights.at(name).contiguous();
      const float* data = values.data_ptr<float>();
      return std::vector<float>(data, data + values.numel());
    });
    EXPECT_LT((run_onnx(graph, images) - wanted).abs().max().item<double>(), 1e-4) << spec.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Minis, CombinationsTest,
                         testing::Values("vit_mini_28", "t2t_mini_28", "swin_mini_28"),
                         [](const auto& p) { return std::string(p.param); });

}  // namespace
}  // namespace adjoin::models
