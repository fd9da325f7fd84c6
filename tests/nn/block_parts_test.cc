// Where the norms of a block stand and what a shortcut adds, beside the formulas written out.
#include "adjoin/nn/attention/mix.h"
#include "adjoin/nn/block.h"
#include "adjoin/nn/linear.h"
#include "adjoin/nn/shortcut.h"
#include "adjoin/spec/tensors.h"
#include "support/numeric_gradient.h"
#include "support/seeded_test.h"

namespace adjoin::nn {
namespace {

constexpr double kEps = 1e-6;

class BlockPartsTest : public SeededTest {
 protected:
  /// Weights for the block as its spec stands, with `width` channels.
  void draw(int64_t tokens, int64_t width, std::optional<Window> window = {}) {
    placed = {"b", &spec, width, tokens, window};
    std::vector<TensorInfo> rows;
    TensorTable(rows).transformer_block(placed, true);
    weights = Weights();
    inputs.clear();
    for (const TensorInfo& info : rows) {
      weights.set(info.name, randn64(info.shape()) * 0.5);
      if (info.is_trained) inputs.emplace_back(info.name, weights.at(info.name));
    }
    x = randn64({2, tokens, width});
    inputs.emplace_back("x", x);
  }

  torch::Tensor run() { return settled(block(placed, kEps, weights, {x}, {})); }

  torch::Tensor norm(const char* name, const torch::Tensor& y) {
    return layer_norm(weights, std::string("b.") + name, y, kEps, {});
  }
  torch::Tensor msa(const torch::Tensor& y) {
    return linear(weights, "b.attn.proj.", mix(placed, weights, y, {}));
  }
  torch::Tensor mlp(const torch::Tensor& y) {
    return linear(weights, "b.mlp.fc2.", torch::gelu(linear(weights, "b.mlp.fc1.", y)));
  }

  static BlockSpec block_spec(int64_t heads, int64_t head_dim, int64_t hidden) {
    BlockSpec block;
    block.heads = heads;
    block.head_dim = head_dim;
    block.hidden = hidden;
    return block;
  }

  BlockSpec spec = block_spec(2, 3, 5);
  PlacedBlock placed;
  Weights weights;
  torch::Tensor x;
  std::vector<std::pair<std::string, torch::Tensor>> inputs;
};

TEST_F(BlockPartsTest, NormsStandWhereTheirPlacementSays) {
  for (const auto& [name, placement] : kEnumNames<NormPlacement>) {
    spec.norm = placement;
    draw(5, 4);
    torch::Tensor wanted;
    if (placement == NormPlacement::kPre) {
      const auto y = x + msa(norm("norm1.", x));
      wanted = y + mlp(norm("norm2.", y));
    } else if (placement == NormPlacement::kPost) {
      const auto y = norm("norm1.", x + msa(x));
      wanted = norm("norm2.", y + mlp(y));
    } else if (placement == NormPlacement::kResPostV2) {
      const auto y = x + norm("norm1.", msa(x));
      wanted = y + norm("norm2.", mlp(y));
    } else {
      const auto y4 = x + norm("norm1.", msa(x));
      wanted = y4 + norm("norm3.", mlp(norm("norm2.", y4)));
    }
    EXPECT_TRUE(torch::allclose(run(), wanted, 0, 1e-12)) << name;
  }
}

TEST_F(BlockPartsTest, EveryPlacementHasTheGradientOfItsFormula) {
  for (const auto& [name, placement] : kEnumNames<NormPlacement>) {
    SCOPED_TRACE(name);
    spec.norm = placement;
    spec.shortcut = Shortcut{.branches = 1, .blocks = 2, .scale = 0.75};
    draw(3, 4);
    expect_gradients_match(
        inputs, [&] { return run(); }, 1e-6);
  }
}

TEST_F(BlockPartsTest, ResPostEqualsThatOfSwinV2AtTheStartOfAReluMlpWithoutBias) {
  torch::Tensor out, gradient;
  for (const auto placement : {NormPlacement::kResPost, NormPlacement::kResPostV2}) {
    torch::manual_seed(7);
    spec.norm = placement;
    draw(6, 8);
    torch::manual_seed(8);
    for (const auto& [name, tensor] : weights) {
      const bool is_norm = name.find("norm") != std::string::npos;
      if (name.ends_with("bias")) tensor.zero_();
      if (is_norm && name.ends_with("weight")) tensor.fill_(1);
      if (is_norm) continue;
      if (name.ends_with("weight")) tensor.copy_(randn64(tensor.sizes()));
    }
    // So far from 0 GELU is ReLU.
    weights.at("b.mlp.fc1.weight").mul_(1e9);
    weights.at("b.mlp.fc2.weight").mul_(1e-9).requires_grad_(true);
    x = randn64({2, 6, 8});
    x = x - x.mean(-1, true);
    const auto got = settled(block(placed, 1e-300, weights, {x}, {}));
    const auto factors = torch::linspace(-1, 1, got.numel(), torch::kFloat64).view_as(got);
    const auto grad =
        torch::autograd::grad({(got * factors).sum()}, {weights.at("b.mlp.fc2.weight")})[0];
    if (!out.defined()) {
      out = got;
      gradient = grad;
      continue;
    }
    EXPECT_TRUE(torch::allclose(got, out, 0, 1e-9));
    EXPECT_TRUE(torch::allclose(grad, gradient, 1e-7, 1e-9 * gradient.abs().max().item<double>()));
  }
}

TEST_F(BlockPartsTest, ShortcutWithoutBranchesIsThePlainBlock) {
  draw(5, 4);
  const auto plain = run();
  spec.shortcut = Shortcut{.branches = 0};
  EXPECT_TRUE(torch::equal(run(), plain));
}

TEST_F(BlockPartsTest, ShortcutsReadWhatTheirHalfReadsAndScaleTheSum) {
  for (const double scale : {1.0, 0.75}) {
    const Shortcut shortcut{.branches = 2, .blocks = 2, .scale = scale};
    spec.shortcut = shortcut;
    spec.norm = NormPlacement::kPre;
    draw(5, 4);
    const auto more = [&](const char* name, const torch::Tensor& y) {
      return shortcut_branches(weights, std::string("b.") + name + ".", shortcut, y);
    };
    const auto whole = norm("norm1.", x);
    const auto y = scale * (x + msa(whole) + more("attn_shortcut", whole));
    const auto mixed = norm("norm2.", y);
    const auto wanted = scale * (y + mlp(mixed) + more("mlp_shortcut", mixed));
    EXPECT_TRUE(torch::allclose(run(), wanted, 0, 1e-12)) << scale;
  }
}

TEST_F(BlockPartsTest, InWindowsTheStreamKeepsItsOrder) {
  for (const auto& [name, placement] : kEnumNames<NormPlacement>) {
    for (const bool is_augmented : {false, true}) {
      spec.norm = placement;
      spec.shortcut.reset();
      if (is_augmented) spec.shortcut = Shortcut{.branches = 1, .blocks = 2, .scale = 0.75};
      const Window window{4, 2, 1};
      draw(16, 4, window);
      // A block sees the same whatever its shift, once the image is rolled by it.
      const auto got = run().view({2, 4, 4, 4});
      const Window still{4, 2, 0};
      placed.window = still;
      const auto rolled = x.view({2, 4, 4, 4}).roll({-1, -1}, {1, 2}).reshape({2, 16, 4});
      const auto other = settled(block(placed, kEps, weights, {rolled}, {}))
                             .view({2, 4, 4, 4})
                             .roll({1, 1}, {1, 2});
      // Away from the edge, where windows hold strangers.
      EXPECT_TRUE(torch::allclose(got.narrow(1, 1, 2).narrow(2, 1, 2),
                                  other.narrow(1, 1, 2).narrow(2, 1, 2), 0, 1e-12))
          << name << is_augmented;
    }
  }
}

TEST_F(BlockPartsTest, DropPathLeavesTheShortcutsBranches) {
  spec.shortcut = Shortcut{.branches = 1, .blocks = 2};
  spec.drop_path = 0.9;
  draw(3, 4);
  x = randn64({64, 3, 4});
  Context context;
  context.is_training = true;
  const auto out = settled(attend(placed, kEps, weights, {x}, context)) - x;
  const auto more =
      shortcut_branches(weights, "b.attn_shortcut.", *spec.shortcut, norm("norm1.", x));
  int64_t alone = 0;
  for (int64_t i = 0; i < 64; ++i) alone += torch::allclose(out[i], more[i], 0, 1e-12) ? 1 : 0;
  EXPECT_GT(alone, 40);
  EXPECT_LT(alone, 64);
}

TEST_F(BlockPartsTest, TokensStayApartLongestWithSkipsAndShortcuts) {
  constexpr int64_t kTokens = 16, kWidth = 32;
  const auto apart = [](const torch::Tensor& y) {
    return (y - y.mean(1, true)).norm().item<double>();
  };
  auto pure = randn64({1, kTokens, kWidth});
  auto skip = pure.clone(), augmented = pure.clone();
  spec = block_spec(4, 8, 1);
  spec.shortcut = Shortcut{};
  for (int depth = 0; depth < 12; ++depth) {
    draw(kTokens, kWidth);
    for (const auto& [name, tensor] : weights) tensor.mul_(2 / std::sqrt(double(kWidth)));
    const auto attended = [&](const torch::Tensor& y) {
      return linear(weights, "b.attn.proj.", mix(placed, weights, y, {}));
    };
    pure = attended(pure);
    skip = skip + attended(skip);
    augmented = augmented + attended(augmented) +
                shortcut_branches(weights, "b.attn_shortcut.", *spec.shortcut, augmented);
  }
  EXPECT_LT(apart(pure), 0.05 * apart(skip));
  EXPECT_LE(apart(skip), apart(augmented));
}

}  // namespace
}  // namespace adjoin::nn
