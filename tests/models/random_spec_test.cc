// The laws for random heterogeneous networks of all families.
#include "support/random_spec.h"

#include "adjoin/core/error.h"
#include "models/laws.h"
#include "support/seeded_test.h"

namespace adjoin::models {
namespace {

constexpr uint64_t kSpecs = 200;

using RandomSpecTest = SeededTest;

TEST_F(RandomSpecTest, TwoHundredNetworksRunAsTheirTablesSay) {
  for (uint64_t seed = 0; seed < kSpecs; ++seed) {
    const ModelSpec spec = random_spec(seed);
    SCOPED_TRACE(spec_to_json(spec).dump());
    expect_laws(spec);
    if (HasFailure()) return;
  }
}

TEST_F(RandomSpecTest, TheForwardPassReadsEveryTensorOfTheTable) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const ModelSpec spec = random_spec(seed);
    const Weights weights = init(spec, seed);
    const auto images = images_for(spec, 1);
    const auto whole = forward(spec, weights, images).logits();
    const auto last = static_cast<int64_t>(placed_blocks(spec).size()) - 1;
    for (const TensorInfo& info : tensors(spec)) {
      // Where a head reads the class token alone, nobody reads what patches ask for in the end.
      const bool is_asked = info.name.find(".rel_pos_embed_k.") != std::string::npos;
      if (is_asked && info.block == last) continue;
      // A hash without numbers is a hash still: all tokens then fall into one bucket.
      if (info.name.ends_with(".rotations")) continue;
      Weights changed = weights;
      changed.set(info.name, weights.at(info.name) + NAN);
      EXPECT_TRUE(forward(spec, changed, images).logits().isnan().any().item<bool>())
          << info.name << " is not read in " << spec_to_json(spec).dump();
    }
    EXPECT_TRUE(whole.isfinite().all().item<bool>());
  }
}

TEST_F(RandomSpecTest, EveryTypeComputesTheSameNetwork) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const ModelSpec spec = random_spec(seed);
    SCOPED_TRACE(spec_to_json(spec).dump());
    const Weights weights = init(spec, seed);
    const auto images = images_for(spec, 2);
    const auto run = [&](torch::ScalarType type) {
      const auto out = forward(spec, weights.to(torch::kCPU, type), images.to(type)).logits();
      EXPECT_EQ(out.scalar_type(), type);
      return out.to(torch::kFloat64);
    };
    const auto exact = run(torch::kFloat64);
    const double size = exact.abs().max().item<double>();
    EXPECT_TRUE(torch::allclose(run(torch::kFloat32), exact, 0, 1e-4 * size));
    EXPECT_TRUE(torch::allclose(run(torch::kBFloat16), exact, 0, 0.2 * size + 0.02));
  }
}

TEST_F(RandomSpecTest, ImagesOfAnotherShapeAreRefused) {
  const ModelSpec spec = random_spec(1);
  const Weights weights = init(spec, 0);
  EXPECT_THROW(
      forward(spec, weights, torch::zeros({1, spec.in_chans + 1, spec.img_size, spec.img_size})),
      Error);
  EXPECT_THROW(forward(spec, weights, torch::zeros({spec.in_chans, spec.img_size, spec.img_size})),
               Error);
}

}  // namespace
}  // namespace adjoin::models
