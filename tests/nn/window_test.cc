// Swin's shifted windows: recorded index and mask values, and an independent brute-force form.
#include "adjoin/nn/attention/window.h"

#include <fmt/format.h>

#include "adjoin/nn/attention/mix.h"
#include "support/seeded_test.h"

namespace adjoin::nn {
namespace {

using WindowTest = SeededTest;

TEST_F(WindowTest, RelativePositionIndexOfTwoByTwo) {
  const auto wanted =
      torch::tensor({4, 3, 1, 0, 5, 4, 2, 1, 7, 6, 4, 3, 8, 7, 5, 4}, torch::kInt64).view({4, 4});
  EXPECT_TRUE(torch::equal(relative_position_index(2), wanted));
}

TEST_F(WindowTest, RelativePositionIndexOfSevenBySeven) {
  const auto index = relative_position_index(7);
  EXPECT_TRUE(torch::equal(index.diagonal(), torch::full({49}, 84, torch::kInt64)));
  EXPECT_EQ(index.min().item<int64_t>(), 0);
  EXPECT_EQ(index.max().item<int64_t>(), 168);
  EXPECT_EQ(index.sum().item<int64_t>(), 201684);
}

TEST_F(WindowTest, MaskedCountsPerWindowOfFourteenByFourteen) {
  const auto counts = (shift_mask({14, 7, 3}) == -100).sum({1, 2});
  EXPECT_TRUE(torch::equal(counts, torch::tensor({0, 1176, 1176, 1776}, torch::kInt64)));
}

TEST_F(WindowTest, MaskedEntriesOfFiftySixByFiftySix) {
  const auto mask = shift_mask({56, 7, 3}) == -100;
  EXPECT_EQ(mask.sum().item<int64_t>(), 18240);
  EXPECT_EQ(mask.any(2).any(1).sum().item<int64_t>(), 15);
}

TEST_F(WindowTest, MaskOfFourByFourFollowsTheLabelMap) {
  const int labels[4][4] = {{0, 0, 1, 2}, {0, 0, 1, 2}, {3, 3, 4, 5}, {6, 6, 7, 8}};
  const auto mask = shift_mask({4, 2, 1});
  for (int w = 0; w < 4; ++w) {
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        const int a = labels[w / 2 * 2 + i / 2][w % 2 * 2 + i % 2];
        const int b = labels[w / 2 * 2 + j / 2][w % 2 * 2 + j % 2];
        EXPECT_EQ(mask[w][i][j].item<float>(), a == b ? 0 : -100) << w << ' ' << i << ' ' << j;
      }
    }
  }
}

/// Attention over all tokens of the grid where each pair sees each other only if, in the rolled
/// image, both stand in one window and in no different part of it: computed from positions alone.
torch::Tensor brute_force(const Weights& weights, const torch::Tensor& x, const BlockSpec& block,
                          const Window& window) {
  const auto [grid, size, shift] = window;
  const int64_t tokens = grid * grid;
  const auto table = weights.at("b.attn.relative_position_bias_table");
  auto bias = torch::full({block.heads, tokens, tokens}, -1e300, torch::kFloat64);
  const auto place = [&](int64_t position) {
    return (position - shift + grid) % grid;
  };                                                                      // after the roll
  const auto wraps = [&](int64_t position) { return position < shift; };  // came round the edge
  for (int64_t i = 0; i < tokens; ++i) {
    for (int64_t j = 0; j < tokens; ++j) {
      const int64_t rows[2] = {i / grid, j / grid}, cols[2] = {i % grid, j % grid};
      const bool is_same_window = place(rows[0]) / size == place(rows[1]) / size &&
                                  place(cols[0]) / size == place(cols[1]) / size;
      if (!is_same_window) continue;
      const bool is_neighbour =
          wraps(rows[0]) == wraps(rows[1]) && wraps(cols[0]) == wraps(cols[1]);
      const int64_t dh = place(rows[0]) - place(rows[1]), dw = place(cols[0]) - place(cols[1]);
      bias.select(1, i).select(1, j) =
          table[(dh + size - 1) * (2 * size - 1) + dw + size - 1] + (is_neighbour ? 0 : -100);
    }
  }
  const auto qkv = torch::linear(x, weights.at("b.attn.qkv.weight"), weights.at("b.attn.qkv.bias"))
                       .view({x.size(0), tokens, 3, block.heads, block.head_dim})
                       .permute({2, 0, 3, 1, 4});
  const auto scores =
      torch::matmul(qkv[0], qkv[1].transpose(2, 3)) / std::sqrt(double(block.head_dim));
  const auto mixed = torch::matmul(torch::softmax(scores + bias, -1), qkv[2]);
  return torch::linear(mixed.transpose(1, 2).reshape({x.size(0), tokens, block.attention_dim()}),
                       weights.at("b.attn.proj.weight"), weights.at("b.attn.proj.bias"));
}

class ShiftTest : public SeededTest, public testing::WithParamInterface<Window> {};

TEST_P(ShiftTest, EqualsDenseAttentionWithABruteForceMask) {
  const Window window = GetParam();
  BlockSpec block;
  block.heads = 2;
  block.head_dim = 3;
  Weights weights;
  weights.set("b.attn.relative_position_bias_table",
              randn64({(2 * window.size - 1) * (2 * window.size - 1), 2}));
  weights.set("b.attn.qkv.weight", randn64({18, 5}));
  weights.set("b.attn.qkv.bias", randn64({18}));
  weights.set("b.attn.proj.weight", randn64({5, 6}));
  weights.set("b.attn.proj.bias", randn64({5}));
  const auto x = randn64({2, window.grid * window.grid, 5});
  Constants constants;
  Context context;
  const auto wanted = brute_force(weights, x, block, window);
  const auto attended = [&] {
    const TokenOrder order = window_order(window, torch::kCPU, context);
    const auto in_windows = x.index_select(1, order.tokens);
    const PlacedBlock placed{"b", &block, 5, x.size(1), window};
    Branch branch =
        projected(weights, "b.attn.proj.", mix(placed, weights, in_windows, context), context);
    branch.order = order;
    return settled({torch::zeros_like(x), branch});
  };
  EXPECT_TRUE(torch::allclose(attended(), wanted, 0, 1e-10));
  context.constants = &constants;
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_TRUE(torch::allclose(attended(), wanted, 0, 1e-10))
        << "with kept constants, pass " << pass;
  }
}

INSTANTIATE_TEST_SUITE_P(Windows, ShiftTest,
                         testing::Values(Window{4, 2, 0}, Window{4, 2, 1}, Window{6, 3, 1},
                                         Window{6, 3, 2}, Window{8, 4, 2}, Window{4, 4, 0},
                                         Window{14, 7, 3}),
                         [](const auto& p) {
                           return fmt::format("Grid{}Window{}Shift{}", p.param.grid, p.param.size,
                                              p.param.shift);
                         });

}  // namespace
}  // namespace adjoin::nn
