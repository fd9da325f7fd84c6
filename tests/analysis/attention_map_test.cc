#include "adjoin/analysis/attention_map.h"

#include <cmath>

#include "adjoin/nn/block.h"
#include "adjoin/nn/linear.h"
#include "support/combinations.h"
#include "support/gap.h"
#include "support/random_weights.h"
#include "support/seeded_test.h"

namespace adjoin::analysis {
namespace {

class AttentionMapTest : public SeededTest, public testing::WithParamInterface<const char*> {};

/// The matrix times the values is what the heads give, whatever the mixer.
TEST_P(AttentionMapTest, IsWhatTheHeadsDoToTheirValues) {
  for (const ModelSpec& spec : combinations(GetParam())) {
    const Weights weights = random_weights(spec, torch::kFloat64);
    const std::vector<PlacedBlock> placed = placed_blocks(spec);
    for (const PlacedBlock& block : placed) {
      const auto x = randn64({2, block.tokens, block.embed_dim});
      const auto heads = nn::heads_of(block, weights, x);
      const AttentionMap map = attention_map(block, weights, heads);
      auto made = torch::matmul(map.weights, heads.v);
      if (map.offset.defined()) made = made + map.offset;
      EXPECT_LT(gap(made, nn::mixed(block, weights, heads, {})), 1e-9) << spec.name;
      if (block.block->mixer.kind == MixerKind::kSoftmax) {
        EXPECT_LT(gap(map.weights.sum(-1), torch::ones_like(map.weights.sum(-1))), 1e-12);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, AttentionMapTest,
                         testing::Values("vit_mini_28", "t2t_mini_28", "swin_mini_28"),
                         [](const auto& p) { return std::string(p.param); });

TEST(AttentionEntropyTest, OfEqualSharesIsTheLogarithmOfTheirNumber) {
  const auto p = torch::full({2, 3, 5, 5}, 0.2, torch::kFloat64);
  EXPECT_LT(gap(attention_entropy(p), torch::full({3}, std::log(5.0), torch::kFloat64)), 1e-12);
  const auto one = torch::eye(5, torch::kFloat64).expand({2, 3, 5, 5});
  EXPECT_EQ(attention_entropy(one).abs().max().item<double>(), 0);
}

TEST(AttentionSpectrumTest, OfEqualSharesHasOneValue) {
  const auto p = torch::full({1, 2, 5, 5}, 0.2, torch::kFloat64);
  const auto spectrum = attention_spectrum(p);
  EXPECT_NEAR(spectrum[1][0].item<double>(), 1, 1e-12);
  EXPECT_LT(spectrum[1][1].item<double>(), 1e-7);
}

/// The exercise of a course on deep learning (SUTD 50.039, 2024, homework 4, question 1): two heads
/// of three channels on two tokens, with its answers worked out once in Python.
class WorkedExampleTest : public testing::Test {
 protected:
  static torch::Tensor matrix(std::vector<double> values, int64_t columns) {
    return torch::tensor(values, torch::kFloat64).view({-1, columns});
  }

  WorkedExampleTest() {
    spec.heads = 2;
    spec.head_dim = 3;
    spec.hidden = 1;
    const auto q = torch::cat({matrix({1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1}, 3),
                               matrix({0, 1, 2, 2, 1, 2, 1, 2, 1, 1, 1, 0, 0, 0, 1, 0, 1, 0}, 3)},
                              1);
    const auto k = torch::cat({matrix({1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 1, 2, 2, 1, 0, 3, 3, 1}, 3),
                               matrix({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 3, 1}, 3)},
                              1);
    const auto v = torch::cat({matrix({3, 2, 1, 1, 2, 3, 1, 2, 1, 2, 1, 2, 1, 1, 1, 3, 1, 3}, 3),
                               matrix({3, 2, 4, 4, 2, 3, 0, 0, 1, 1, 1, 0, 1, 1, 1, 3, 1, 3}, 3)},
                              1);
    weights.set("b.attn.qkv.weight", torch::cat({q, k, v}, 1).t().contiguous());
    weights.set("b.attn.proj.weight", matrix({1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 2, 0, 1, 1, 1, 1, 1, 2,
                                              2, 2, 2, 1, 1, 0, 2, 1, 0, 1, 2, 0, 0, 0, 0, 0, 1, 0},
                                             6)
                                          .t()
                                          .contiguous());
    x = matrix({1, 0, 1, 2, 1, 1, 1, 2, 0, 1, 1, 1}, 6).unsqueeze(0);
  }

  BlockSpec spec;
  PlacedBlock placed{"b", &spec, 6, 2, {}};
  Weights weights;
  torch::Tensor x;
};

TEST_F(WorkedExampleTest, HeadsGiveTheAnswersOfQuestion1) {
  const auto heads = nn::mixed(placed, weights, nn::heads_of(placed, weights, x), {})[0];
  EXPECT_LT(
      gap(heads[0], matrix({11.982731, 8.017269, 10.051806, 11.947188, 8.052812, 10.158437}, 3)),
      1e-6);
  EXPECT_LT(gap(heads[1], matrix({9.632431, 6.271042, 9.451737, 9.120880, 6.051806, 9.086343}, 3)),
            1e-6);
}

TEST_F(WorkedExampleTest, TheBlockGivesTheAnswerOfQuestion1) {
  const auto out = nn::linear(weights, "b.attn.proj.", nn::mix(placed, weights, x, {}));
  EXPECT_LT(gap(out[0], matrix({53.8414841000, 43.6049790359, 29.3166684706, 37.9380105504,
                                57.7125948912, 20.1036110023, 52.4509947892, 42.5048140695,
                                28.4001961776, 37.2783097853, 56.5748949607, 20.3168743446},
                               6)),
            1e-9);
}

TEST_F(WorkedExampleTest, AttentionHasTheWeightsOfQuestion1) {
  const auto p = attention_map(placed, weights, nn::heads_of(placed, weights, x)).weights[0];
  EXPECT_LT(gap(p[0], matrix({.9827314996, .0172685004, .9471876092, .0528123908}, 2)), 1e-9);
  EXPECT_LT(gap(p[1], matrix({.9096526450, .0903473550, .9827314996, .0172685004}, 2)), 1e-9);
}

}  // namespace
}  // namespace adjoin::analysis
