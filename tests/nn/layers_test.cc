// Gradients of every layer against finite differences, and what slices and training do to them.
#include "adjoin/nn/block.h"
#include "adjoin/nn/linear.h"
#include "adjoin/nn/mlp.h"
#include "adjoin/nn/patch_embed.h"
#include "support/numeric_gradient.h"
#include "support/seeded_test.h"

namespace adjoin::nn {
namespace {

/// A bag of float64 tensors and the list of them that gradients are checked for.
class LayerTest : public SeededTest {
 protected:
  void add(const std::string& name, at::IntArrayRef shape) {
    weights.set(name, randn64(shape) * 0.5);
    inputs.emplace_back(name, weights.at(name));
  }

  void add_linear(const std::string& prefix, int64_t out, int64_t in) {
    add(prefix + "weight", {out, in});
    add(prefix + "bias", {out});
  }

  void add_norm(const std::string& prefix, int64_t width) {
    add(prefix + "weight", {width});
    add(prefix + "bias", {width});
  }

  torch::Tensor& add_input(at::IntArrayRef shape) {
    x = randn64(shape);
    inputs.emplace_back("x", x);
    return x;
  }

  Weights weights;
  Context context;
  torch::Tensor x;
  std::vector<std::pair<std::string, torch::Tensor>> inputs;
};

TEST_F(LayerTest, LinearHasTheGradientOfItsFormula) {
  add_linear("fc.", 3, 4);
  add_input({2, 5, 4});
  expect_gradients_match(inputs, [&] { return linear(weights, "fc.", x); });
}

TEST_F(LayerTest, LayerNormHasTheGradientOfItsFormula) {
  add_norm("norm.", 6);
  add_input({2, 3, 6});
  expect_gradients_match(inputs, [&] { return layer_norm(weights, "norm.", x, 1e-5, {}); });
}

TEST_F(LayerTest, MlpHasTheGradientOfItsFormula) {
  add_linear("mlp.fc1.", 7, 4);
  add_linear("mlp.fc2.", 4, 7);
  add_input({2, 3, 4});
  expect_gradients_match(inputs, [&] { return settled({x, mlp(weights, "mlp.", x, context)}); });
}

TEST_F(LayerTest, PatchEmbedHasTheGradientOfItsFormula) {
  add("proj.weight", {3, 2, 2, 2});
  add("proj.bias", {3});
  add_input({2, 2, 4, 4});
  expect_gradients_match(inputs, [&] { return patch_embed(weights, "proj.", x); });
}

TEST_F(LayerTest, PatchEmbedIsAStridedConvolution) {
  add("proj.weight", {5, 3, 4, 4});
  add("proj.bias", {5});
  add_input({2, 3, 8, 8});
  const auto conv =
      torch::conv2d(x, weights.at("proj.weight"), weights.at("proj.bias"), /*stride=*/4);
  EXPECT_TRUE(
      torch::allclose(patch_embed(weights, "proj.", x), conv.flatten(2).transpose(1, 2), 0, 1e-12));
}

class BlockTest : public LayerTest {
 protected:
  void add_block(int64_t embed, std::optional<Window> window) {
    spec.heads = 2;
    spec.head_dim = 3;  // 2 x 3 is not the residual width
    spec.hidden = 5;
    if (window)
      add("b.attn.relative_position_bias_table",
          {(2 * window->size - 1) * (2 * window->size - 1), 2});
    add_norm("b.norm1.", embed);
    add_linear("b.attn.qkv.", 3 * spec.attention_dim(), embed);
    add_linear("b.attn.proj.", embed, spec.attention_dim());
    add_norm("b.norm2.", embed);
    add_linear("b.mlp.fc1.", spec.hidden, embed);
    add_linear("b.mlp.fc2.", embed, spec.hidden);
    placed = {"b", &spec, embed, 0, window};
  }

  torch::Tensor run() { return settled(block(placed, 1e-6, weights, {x}, context)); }

  BlockSpec spec;
  PlacedBlock placed;
};

TEST_F(BlockTest, HasTheGradientOfItsFormula) {
  add_block(4, std::nullopt);
  add_input({2, 3, 4});
  expect_gradients_match(inputs, [&] { return run(); });
}

TEST_F(BlockTest, WithWindowsHasTheGradientOfItsFormula) {
  add_block(4, Window{4, 2, 0});
  add_input({2, 16, 4});
  expect_gradients_match(inputs, [&] { return run(); });
}

TEST_F(BlockTest, WithShiftedWindowsHasTheGradientOfItsFormula) {
  add_block(4, Window{4, 2, 1});
  add_input({2, 16, 4});
  expect_gradients_match(inputs, [&] { return run(); });
}

TEST_F(BlockTest, DropPathSkipsWholeSamplesAndScalesTheRest) {
  add_block(4, std::nullopt);
  add_input({64, 3, 4});
  const auto full = run() - x;
  spec.drop_path = 0.5;
  EXPECT_TRUE(torch::equal(run() - x, full)) << "outside training nothing is dropped";
  context.is_training = true;
  const auto mlp_only = run() - x;
  int64_t skipped = 0;
  for (int64_t i = 0; i < x.size(0); ++i) skipped += mlp_only[i].abs().max().item<double>() == 0;
  EXPECT_GT(skipped, 6);  // a quarter of 64 lose both branches
  EXPECT_LT(skipped, 27);
}

TEST_F(BlockTest, DropPathKeepsTheMean) {
  context.is_training = true;
  const auto dropped = drop_path(20000, torch::ones({}, torch::kFloat64), 0.3, context);
  EXPECT_NEAR(dropped.mean().item<double>(), 1, 0.03);
  EXPECT_NEAR((dropped == 0).to(torch::kFloat64).mean().item<double>(), 0.3, 0.02);
}

TEST_F(BlockTest, DropoutDrawsFromTheGeneratorOfItsContext) {
  const auto values = torch::ones({1000});
  context.is_training = true;
  context.rng = at::detail::createCPUGenerator(7);
  const auto first = dropout(values, 0.5, context);
  context.rng = at::detail::createCPUGenerator(7);
  EXPECT_TRUE(torch::equal(dropout(values, 0.5, context), first));
  EXPECT_FALSE(torch::equal(dropout(values, 0.5, context), first));
}

TEST_F(LayerTest, MlpReadsNothingOutsideItsSlice) {
  add_linear("fc1.", 8, 6);
  add_linear("fc2.", 6, 8);
  add_input({2, 5, 6});
  Weights first;
  first.set("fc1.weight", weights.at("fc1.weight").narrow(0, 0, 4));
  first.set("fc1.bias", weights.at("fc1.bias").narrow(0, 0, 4));
  first.set("fc2.weight", weights.at("fc2.weight").narrow(1, 0, 4));
  first.set("fc2.bias", weights.at("fc2.bias"));
  const auto run = [&] { return settled({x, mlp(first, "", x, context)}); };
  const auto before = run();
  weights.at("fc1.weight").narrow(0, 4, 4).fill_(NAN);
  weights.at("fc2.weight").narrow(1, 4, 4).fill_(NAN);
  EXPECT_TRUE(torch::equal(run(), before));
}

}  // namespace
}  // namespace adjoin::nn
