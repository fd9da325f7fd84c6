#include "adjoin/analysis/bounds.h"

#include <cmath>

#include "adjoin/analysis/gradient_law.h"
#include "adjoin/analysis/laws.h"
#include "adjoin/analysis/low_rank.h"
#include "adjoin/analysis/token_rank.h"
#include "adjoin/models/forward.h"
#include "adjoin/nn/attention/mix.h"
#include "adjoin/nn/linear.h"
#include "adjoin/nn/shortcut.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/overrides.h"
#include "support/gap.h"
#include "support/random_weights.h"
#include "support/seeded_test.h"

namespace adjoin::analysis {
namespace {

double log_residual(const torch::Tensor& x) {
  return std::log(composite_norm(residual(x)).item<double>());
}

class BoundsTest : public SeededTest {
 protected:
  /// One head on `width` channels, of any scale; with biases or without.
  void draw(int64_t width, int64_t head_dim, bool has_bias) {
    spec.heads = 1;
    spec.head_dim = head_dim;
    const auto scale = [&] { return std::pow(10.0, 3 * torch::rand(1).item<double>() - 2); };
    weights.set("b.attn.qkv.weight", randn64({3 * head_dim, width}) * scale());
    weights.set("b.attn.proj.weight", randn64({width, head_dim}) * scale());
    weights.erase("b.attn.qkv.bias");
    if (has_bias) weights.set("b.attn.qkv.bias", randn64({3 * head_dim}) * scale());
  }

  torch::Tensor attended(const torch::Tensor& x) {
    return nn::linear(weights, "b.attn.proj.", nn::mix(placed, weights, x, {}));
  }

  double log_factor() {
    return log_attention_factor(log_beta(head_matrices(placed, weights)), 1, spec.head_dim);
  }

  BlockSpec spec;
  PlacedBlock placed{"b", &spec, 1, 1, {}};
  Weights weights;
};

TEST_F(BoundsTest, TenThousandSingleLayersKeepTheorem22) {
  constexpr int64_t kImages = 50;
  double nearest = -INFINITY;
  for (int trial = 0; trial < 200; ++trial) {
    const int64_t tokens = 2 + trial % 7, width = 1 + trial % 5;
    draw(width, 1 + trial % 3, trial % 2 == 0);
    const auto size = torch::pow(10.0, 4 * torch::rand({kImages, 1, 1}, torch::kFloat64) - 3);
    const auto x = randn64({kImages, tokens, width}) * size + randn64({kImages, 1, width});
    const auto after = attended(x);
    const double factor = log_factor();
    for (int64_t i = 0; i < kImages; ++i) {
      const double floor =
          std::log(64 * std::numeric_limits<double>::epsilon() * static_cast<double>(tokens)) +
          std::log(composite_norm(after[i]).item<double>());
      const double measured = log_residual(after[i]);
      const double bound = factor + 3 * log_residual(x[i]);
      EXPECT_LE(measured, std::max(bound, floor)) << "trial " << trial << ", image " << i;
      const bool is_exact = measured > floor + std::log(1e5);
      if (is_exact) nearest = std::max(nearest, measured - bound);
    }
  }
  EXPECT_LE(std::exp(nearest), 0.125 + 1e-6);  // the limit of two tokens and one channel
  EXPECT_GT(std::exp(nearest), 1e-3) << "these trials could not have failed";
}

TEST_F(BoundsTest, DeeperStacksKeepTheorem22DownToRounding) {
  for (int trial = 0; trial < 300; ++trial) {
    const int64_t tokens = 2 + trial % 7, width = 1 + trial % 5;
    auto x = randn64({1, tokens, width});
    const double start = log_residual(x[0]);
    double factor = -INFINITY;
    double bound = INFINITY;
    for (int64_t layer = 1; layer <= 4; ++layer) {
      draw(width, 2, false);
      factor = std::max(factor, log_factor());
      x = attended(x);
      bound = log_stack_bound(factor, start, layer);
      const double floor =
          std::log(64 * std::numeric_limits<double>::epsilon() * static_cast<double>(tokens)) +
          std::log(composite_norm(x[0]).item<double>());
      EXPECT_LE(log_residual(x[0]), std::max(bound, floor)) << trial << " at layer " << layer;
    }
  }
}

TEST_F(BoundsTest, TheBoundOfOneLayerIsTheStackOfOne) {
  EXPECT_DOUBLE_EQ(log_stack_bound(0.3, -0.7, 1), 0.3 + 3 * -0.7);
  EXPECT_DOUBLE_EQ(log_stack_bound(0.3, -0.7, 3), 13 * 0.3 + 27 * -0.7);
  EXPECT_EQ(log_stack_bound(-1, -1, 1000), -INFINITY);  // no overflow to a wrong sign
}

/// Line (9) of the proof in the lecture notes says P R <= (I + 2D) 1 softmax(r)^T R for every
/// entry. With two tokens on both sides of their mean the right side is 0 and the left is not.
TEST_F(BoundsTest, InequalityNineIsFalseForResidualsOfBothSigns) {
  const auto rest = torch::tensor({{1.0}, {-1.0}}, torch::kFloat64);
  const auto scores = torch::matmul(rest, rest.t());
  const auto left = torch::matmul(torch::softmax(scores, -1), rest);
  const auto spread = scores.amax(1) - scores.amin(1);
  const auto share = torch::full({2, 1}, 0.5, torch::kFloat64);  // softmax of r = 0
  const auto right = (1 + 2 * spread).unsqueeze(1) * torch::matmul(share.t(), rest);
  EXPECT_NEAR(left[0].item<double>(), std::tanh(1.0), 1e-12);
  EXPECT_EQ(right[0].item<double>(), 0);
  EXPECT_GT(left[0].item<double>(), right[0].item<double>());
}

TEST_F(BoundsTest, TheSlopeOfGeluIsLargestAtTheRootOfTwo) {
  const auto x = torch::linspace(-6, 6, 1'200'001, torch::kFloat64).requires_grad_(true);
  const auto slope = torch::autograd::grad({torch::gelu(x).sum()}, {x})[0];
  EXPECT_NEAR(slope.max().item<double>(), kGeluSlope, 1e-7);
  EXPECT_NEAR(x[slope.argmax()].item<double>(), std::sqrt(2.0), 1e-4);
}

/// S.2: a branch GELU(Z Theta) leaves at most lambda |Theta| of the residual.
TEST_F(BoundsTest, ABranchOfAShortcutKeepsItsBound) {
  for (int trial = 0; trial < 300; ++trial) {
    const auto theta = randn64({5, 5}) * (0.1 + trial % 7);
    const auto z = randn64({1 + trial % 9 + 1, 5}) * 3;
    const auto made = torch::gelu(torch::matmul(z, theta));
    const double spectral = torch::linalg_svdvals(theta)[0].item<double>();
    EXPECT_LE(frobenius(residual(made)).item<double>(),
              kGeluSlope * spectral * frobenius(residual(z)).item<double>() * (1 + 1e-12));
  }
}

TEST_F(BoundsTest, TheClosedFormIsAboveTheRecursion) {
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<BlockFactors> blocks;
    const auto draw = [] { return torch::rand(1).item<double>(); };
    const double start = 8 * draw() - 6;
    double recursion = start;
    for (int layer = 0; layer < 6; ++layer) {
      BlockFactors block;
      block.heads = 1 + trial % 3;
      block.log_attention = 10 * draw() - 6;
      block.alpha = 1 + draw();
      block.beta = 1 + draw();
      block.delta = 2 * draw();
      blocks.push_back(block);
      recursion = log_recursion(block, recursion);
      EXPECT_LE(recursion, log_closed_form(blocks, start) + 1e-9 * std::abs(recursion));
    }
  }
}

TEST_F(BoundsTest, TheClosedFormHoldsWhereAttentionDoesNothing) {
  BlockFactors block;
  block.log_attention = -INFINITY;
  block.alpha = 1.5;
  const double once = log_recursion(block, -2);
  EXPECT_NEAR(log_closed_form({block}, -2), once, 1e-12);
  EXPECT_NEAR(log_closed_form({block, block}, -2), log_recursion(block, once), 1e-12);
}

TEST_F(BoundsTest, TheScaleOfAnMlpThatIsNotThereIsNotCounted) {
  const ModelSpec scaled = with_overrides(catalog_spec("vit_mini_28"),
                                          {{"shortcut", "dense"}, {"shortcut.scale", "0.1"}});
  const Weights all = random_weights(scaled, torch::kFloat64);
  const std::vector<PlacedBlock> blocks = placed_blocks(scaled);
  EXPECT_EQ(block_factors(blocks[0], all, false).scale, 0.1);
  EXPECT_EQ(block_factors(blocks[0], all, false).mlp_scale, 1);
  EXPECT_EQ(block_factors(blocks[0], all, true).mlp_scale, 0.1);
}

TEST_F(BoundsTest, AsPrintedWithFactorsOfOneBlockTheClosedFormIsNoBound) {
  BlockFactors large, small;
  large.log_attention = small.log_attention = -100;
  large.alpha = 50;
  const double after = log_recursion(small, log_recursion(large, 0));
  EXPECT_LE(after, log_closed_form({large, small}, 0));
  EXPECT_GT(after, log_closed_form({small, small}, 0));  // alpha of the last block for all
}

// ---- networks

class LawsTest : public SeededTest {
 protected:
  static ModelSpec spec_of(const std::vector<Override>& changes) {
    std::vector<Override> all = {{"depth", "6"}};
    all.insert(all.end(), changes.begin(), changes.end());
    return with_overrides(catalog_spec("vit_mini_28"), all);
  }

  Laws laws_of(const ModelSpec& spec) {
    Weights weights;
    for (const TensorInfo& info : tensors(spec)) {
      const bool is_gain = info.shape().size() == 1 && info.name.ends_with("weight");
      const auto drawn = randn64(info.shape()) * 0.15;
      weights.set(info.name, is_gain ? drawn + 1 : drawn);
    }
    return laws({spec, weights}, randn64({1, 1, 28, 28}), 0);
  }

  static size_t count(const Laws& found, const std::string& law) {
    return static_cast<size_t>(std::count_if(found.bounds.begin(), found.bounds.end(),
                                             [&](const LawRow& row) { return row.law == law; }));
  }
};

TEST_F(LawsTest, HoldInNetworksWithAndWithoutShortcuts) {
  for (const char* shortcut : {"none", "circulant", "dense"}) {
    const Laws found = laws_of(spec_of({{"shortcut", shortcut}}));
    for (const LawRow& row : found.bounds) {
      if (row.law == "activation maximum") continue;  // of start values, which these are not
      EXPECT_TRUE(row.holds) << shortcut << ": " << row.law << " in " << row.layer << ", "
                             << row.measured << " above " << row.bound;
    }
    EXPECT_EQ(count(found, "Theorem 2.2"), 6U);
    EXPECT_EQ(count(found, "Theorem 2.2 by depth"), 6U);
    EXPECT_EQ(count(found, "S.4"), 6U);
    EXPECT_EQ(count(found, "S.8 by recursion"), 6U);
    EXPECT_EQ(count(found, "S.8 closed form over recursion"), 6U);
    EXPECT_EQ(count(found, "S.2 in Frobenius"), std::string(shortcut) == "none" ? 0U : 6U);
    EXPECT_EQ(found.low_rank.size(), 6U);
  }
}

TEST_F(LawsTest, SayWhereTheProofDoesNotCoverWhatIsMeasured) {
  for (const LawRow& row : laws_of(spec_of({})).bounds) {
    if (row.law.starts_with("Theorem 2.2") || row.law == "S.4") {
      EXPECT_FALSE(row.is_proven);
      EXPECT_NE(row.note.find("no norm"), std::string::npos);
    }
  }
  for (const LawRow& row : laws_of(spec_of({{"heads", "1"}})).bounds) {
    if (!row.law.starts_with("Theorem 2.2")) continue;
    EXPECT_FALSE(row.is_proven);
    EXPECT_NE(row.note.find("nearest row"), std::string::npos);
  }
}

TEST_F(LawsTest, LengthsOfNormsAreTheRootOfTheWidthForEveryPlacement) {
  for (const auto& [name, placement] : kEnumNames<NormPlacement>) {
    const Laws found = laws_of(spec_of({{"norm", std::string(name)}}));
    EXPECT_EQ(count(found, "|LN(x)|^2 = d"), 6U) << name;
    const bool is_after =
        placement == NormPlacement::kResPost || placement == NormPlacement::kResPostV2;
    EXPECT_EQ(count(found, "Lemma 1"), is_after ? 6U : 0U) << name;
    for (const LawRow& row : found.bounds) {
      if (row.law == "|LN(x)|^2 = d") {
        EXPECT_NEAR(row.margin(), 0, 1e-3) << name << row.layer;
      }
    }
  }
}

/// Lemma 1 of the supplement of VTCA: at the start |Y|^2 grows with depth, and no faster.
TEST_F(LawsTest, TokensOfResPostNormsGrowLinearlyWithDepth) {
  const ModelSpec spec = with_overrides(catalog_spec("vit_mini_28"), {{"depth", "32"},
                                                                      {"embed_dim", "128"},
                                                                      {"heads", "4"},
                                                                      {"mlp_ratio", "1"},
                                                                      {"norm", "res-post"}});
  Weights weights;
  for (const TensorInfo& info : tensors(spec)) {
    const bool is_vector = info.shape().size() == 1;
    const bool is_gain = is_vector && info.name.ends_with("weight");
    weights.set(info.name, is_gain     ? torch::ones(info.shape(), torch::kFloat64)
                           : is_vector ? torch::zeros(info.shape(), torch::kFloat64)
                                       : randn64(info.shape()) / std::sqrt(128.0));
  }
  std::vector<int64_t> depths;
  std::vector<double> lengths;
  nn::Context context;
  context.tap = [&](std::string_view name, const torch::Tensor& y) {
    if (!name.starts_with("blocks.")) return;
    const auto depth = static_cast<double>(depths.size() + 1);
    lengths.push_back(y.square().sum(-1).mean().item<double>());
    depths.push_back(static_cast<int64_t>(depth));
    EXPECT_LE(lengths.back(), 2 * ((2 * depth - 1) * 128 * 128 + depth * 128));
  };
  const auto tokens = randn64({1, 16, 128});
  models::answer(spec, weights, torch::layer_norm(tokens, {128}), context);
  ASSERT_EQ(depths.size(), 32U);
  EXPECT_GT(lengths[0], 2 * 128);  // the step |Y_2|^2 <= 2 d of the proof is false
  depths.erase(depths.begin(), depths.begin() + 3);
  lengths.erase(lengths.begin(), lengths.begin() + 3);
  EXPECT_NEAR(log_slope(depths, lengths), 1, 0.15);
}

TEST_F(LawsTest, SayWhyThereAreNoBoundsForOtherAttention) {
  const Laws linear = laws_of(spec_of({{"mixer", "linear"}}));
  EXPECT_EQ(count(linear, "Theorem 2.2"), 0U);
  ASSERT_EQ(linear.notes.size(), 1U);
  EXPECT_NE(linear.notes[0].find("mixer linear"), std::string::npos);
  const Laws swin = laws_of(catalog_spec("swin_mini_28"));
  EXPECT_EQ(count(swin, "S.4"), 0U);
  EXPECT_NE(swin.notes.at(0).find("windows"), std::string::npos);
}

TEST_F(LawsTest, RandomProjectionsKeepWhatIsPositiveAndLoseWhatCancels) {
  const int64_t tokens = 600;
  const auto p = torch::full({1, 1, tokens, tokens}, 1.0 / static_cast<double>(tokens),
                             torch::kFloat64);  // attention that sees all alike
  const LowRankRow row = low_rank("b", p, 0.5, 100, 0);
  EXPECT_EQ(row.k, 256);
  EXPECT_EQ(projected_tokens(65, 0.5), 167);  // more than there are
  EXPECT_GT(row.success_positive, 0.99);
  EXPECT_LT(row.success_gaussian, 0.6);  // the claim is false for w whose mean is near 0
  EXPECT_EQ(row.rank_99, std::vector<int64_t>{1});
  EXPECT_LT(row.svd_error[0], 1e-6);
}

}  // namespace
}  // namespace adjoin::analysis
