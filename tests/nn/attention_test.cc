// Attention: the worked example of seed 004, laws, and the blocked way beside the plain one.
#include <fmt/format.h>

#include "adjoin/nn/attention/blocked.h"
#include "adjoin/nn/attention/performer.h"
#include "adjoin/nn/attention/relative.h"
#include "adjoin/nn/attention/softmax.h"
#include "adjoin/nn/linear.h"
#include "adjoin/spec/relative.h"
#include "support/numeric_gradient.h"
#include "support/seeded_test.h"

namespace adjoin::nn {
namespace {

using AttentionTest = SeededTest;

torch::Tensor matrix(std::vector<double> values, int64_t rows) {
  return torch::tensor(values, torch::kFloat64).view({rows, -1});
}

/// Seed 004, question 1: two tokens, two heads of three, an output projection; no biases.
class WorkedExampleTest : public SeededTest {
 protected:
  WorkedExampleTest() {
    const auto wq1 = matrix({1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1}, 6);
    const auto wq2 = matrix({0, 1, 2, 2, 1, 2, 1, 2, 1, 1, 1, 0, 0, 0, 1, 0, 1, 0}, 6);
    const auto wk1 = matrix({1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 1, 2, 2, 1, 0, 3, 3, 1}, 6);
    const auto wk2 = matrix({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 3, 1}, 6);
    const auto wv1 = matrix({3, 2, 1, 1, 2, 3, 1, 2, 1, 2, 1, 2, 1, 1, 1, 3, 1, 3}, 6);
    const auto wv2 = matrix({3, 2, 4, 4, 2, 3, 0, 0, 1, 1, 1, 0, 1, 1, 1, 3, 1, 3}, 6);
    const auto wo = matrix({1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 2, 0, 1, 1, 1, 1, 1, 2,
                            2, 2, 2, 1, 1, 0, 2, 1, 0, 1, 2, 0, 0, 0, 0, 0, 1, 0},
                           6);
    weights.set("qkv.weight", torch::cat({wq1, wq2, wk1, wk2, wv1, wv2}, 1).t().contiguous());
    weights.set("proj.weight", wo.t().contiguous());
  }

  Weights weights;
  torch::Tensor x = matrix({1, 0, 1, 2, 1, 1, 1, 2, 0, 1, 1, 1}, 2).unsqueeze(0);
};

TEST_F(WorkedExampleTest, HeadsAndOutputAgreeToSixDecimals) {
  const auto heads =
      softmax_attention(linear(weights, "qkv.", x), /*heads=*/2, 1 / std::sqrt(3.0), {});
  const auto out = linear(weights, "proj.", heads);
  const auto wanted_heads =
      matrix({11.982731, 8.017269, 10.051806, 9.632431, 6.271042, 9.451737,  //
              11.947188, 8.052812, 10.158437, 9.120880, 6.051806, 9.086343},
             2);
  const auto wanted_out =
      matrix({53.841484, 43.604979, 29.316668, 37.938011, 57.712595, 20.103611,  //
              52.450995, 42.504814, 28.400196, 37.278310, 56.574895, 20.316874},
             2);
  EXPECT_LT((heads[0] - wanted_heads).abs().max().item<double>(), 5.1e-7) << heads;
  EXPECT_LT((out[0] - wanted_out).abs().max().item<double>(), 5.1e-7) << out;
}

TEST_F(AttentionTest, GivesTheWorkedExampleWithoutScaleToo) {
  const auto q = matrix({3, 6, 4, 5, 5, 7}, 2).unsqueeze(0);
  const auto k = matrix({2, 3, 3, 2, 3, 2}, 2).unsqueeze(0);
  const auto v = matrix({9, 6, 9, 16, 9, 14}, 2).unsqueeze(0);
  const auto wanted = matrix({9.125903, 6.053959, 9.089931, 9.006377, 6.002733, 9.004555}, 2);
  EXPECT_LT((plain_attention(q, k, v, 1, {})[0] - wanted).abs().max().item<double>(), 5e-7);
}

TEST_F(AttentionTest, PermutedTokensGivePermutedOutputs) {
  const auto qkv = randn64({2, 7, 3 * 2 * 4});
  const auto order = torch::randperm(7);
  const auto moved = softmax_attention(qkv.index_select(1, order), 2, 0.5, {});
  EXPECT_TRUE(
      torch::allclose(moved, softmax_attention(qkv, 2, 0.5, {}).index_select(1, order), 0, 1e-12));
}

TEST_F(AttentionTest, SoftmaxAttentionHasTheGradientOfItsFormula) {
  const auto qkv = randn64({2, 3, 3 * 2 * 2});
  expect_gradients_match({{"qkv", qkv}}, [&] { return softmax_attention(qkv, 2, 0.7, {}); });
}

/// Sizes at which the blocked form uses one run, several runs, and a last run that is not full.
class BlockedTest : public SeededTest,
                    public testing::WithParamInterface<std::tuple<int, int, int>> {
 protected:
  const int heads = std::get<0>(GetParam());
  const int tokens = std::get<1>(GetParam());
  const int bias_rows = std::get<2>(GetParam());
  torch::Tensor q = randn64({3, heads, tokens, 5});
  torch::Tensor k = randn64({3, heads, tokens, 5});
  torch::Tensor v = randn64({3, heads, tokens, 5});
  torch::Tensor bias = bias_rows == 0 ? torch::Tensor() : randn64({bias_rows, tokens, tokens});
  torch::Tensor repeated() const {
    return bias.defined() ? bias.repeat({heads / bias_rows, 1, 1}) : bias;
  }
};

TEST_P(BlockedTest, EqualsThePlainForm) {
  const auto plain = plain_attention(q, k, v, 0.3, repeated());
  EXPECT_TRUE(torch::allclose(blocked_attention(q, k, v, 0.3, bias), plain, 0, 1e-12));
}

TEST_P(BlockedTest, HasTheGradientsOfThePlainForm) {
  const auto gradients = [&](auto attention) {
    std::vector<torch::Tensor> inputs = {q.clone().requires_grad_(), k.clone().requires_grad_(),
                                         v.clone().requires_grad_()};
    torch::Tensor b = bias;
    if (bias.defined()) inputs.push_back(b = bias.clone().requires_grad_());
    const auto out = attention(inputs[0], inputs[1], inputs[2], b);
    return torch::autograd::grad({(out * out.detach().cos()).sum()}, inputs);
  };
  const auto ours =
      gradients([&](auto a, auto b, auto c, auto d) { return blocked_attention(a, b, c, 0.3, d); });
  const auto plain = gradients([&](auto a, auto b, auto c, auto d) {
    return plain_attention(a, b, c, 0.3, d.defined() ? d.repeat({heads / bias_rows, 1, 1}) : d);
  });
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_TRUE(torch::allclose(ours[i], plain[i], 1e-10, 1e-12)) << "input " << i;
  }
}

TEST_P(BlockedTest, IsTwiceDifferentiable) {
  const auto x = q.clone().requires_grad_();
  const auto b = bias.defined() ? bias.clone().requires_grad_() : bias;
  const auto penalty = [&](const torch::Tensor& out) {
    const auto grad =
        torch::autograd::grad({out.square().sum()}, {x}, {}, true, /*create_graph=*/true);
    return torch::autograd::grad({grad[0].square().sum()}, {x})[0];
  };
  const auto repeat = b.defined() ? b.repeat({heads / bias_rows, 1, 1}) : b;
  EXPECT_TRUE(torch::allclose(penalty(blocked_attention(x, k, v, 0.3, b)),
                              penalty(plain_attention(x, k, v, 0.3, repeat)), 1e-8, 1e-10));
}

INSTANTIATE_TEST_SUITE_P(Sizes, BlockedTest,
                         testing::Values(std::tuple{1, 1, 0}, std::tuple{4, 6, 0},
                                         std::tuple{4, 6, 4}, std::tuple{6, 5, 2},
                                         std::tuple{2, 150, 0}, std::tuple{2, 150, 2},
                                         std::tuple{3, 230, 1}),
                         [](const auto& p) {
                           return fmt::format("H{}N{}Bias{}", std::get<0>(p.param),
                                              std::get<1>(p.param), std::get<2>(p.param));
                         });

/// Kernel attention written with the full (N, N) matrix of feature products.
torch::Tensor dense_kernel_attention(const torch::Tensor& q, const torch::Tensor& k,
                                     const torch::Tensor& v, const torch::Tensor& w) {
  const auto feature = [&](const torch::Tensor& x) {
    return torch::exp(torch::matmul(x, w.t()) - x.pow(2).sum(-1, true) / 2) /
           std::sqrt(double(w.size(0)));
  };
  const auto kernel = torch::matmul(feature(q), feature(k).transpose(1, 2));  // (B, N, N)
  return torch::matmul(kernel, v) / (kernel.sum(-1, true) + 1e-8);
}

TEST_F(AttentionTest, PerformerEqualsDenseKernelAttention) {
  const auto q = randn64({2, 9, 6}), k = randn64({2, 9, 6}), v = randn64({2, 9, 6});
  const auto w = randn64({3, 6});
  EXPECT_TRUE(torch::allclose(performer(q, k, v, w), dense_kernel_attention(q, k, v, w), 0, 1e-12));
}

TEST_F(AttentionTest, PerformerHasTheGradientOfItsFormula) {
  const auto q = randn64({2, 3, 4}), k = randn64({2, 3, 4}), v = randn64({2, 3, 4});
  const auto w = randn64({2, 4});
  expect_gradients_match({{"q", q}, {"k", k}, {"v", v}}, [&] { return performer(q, k, v, w); });
}

TEST_F(AttentionTest, PerformerErrorFallsWithTheRootOfTheFeatures) {
  const auto q = randn64({1, 16, 4}) * 0.2, k = randn64({1, 16, 4}) * 0.2, v = randn64({1, 16, 4});
  const auto exact = plain_attention(q, k, v, 1, {});
  const auto error = [&](int64_t features) {
    double sum = 0;
    for (int draw = 0; draw < 20; ++draw) {
      sum += (performer(q, k, v, randn64({features, 4})) - exact).square().mean().item<double>();
    }
    return std::sqrt(sum / 20);
  };
  const double slope = std::log(error(4096) / error(64)) / std::log(4096.0 / 64);
  EXPECT_NEAR(slope, -0.5, 0.12);
}

/// A vector for every pair of tokens, by the definition: rows and columns apart, each cut at the
/// distance; row 0 where one of the two is a class token. (N, N, d)
torch::Tensor pair_vectors(const torch::Tensor& by_row, const torch::Tensor& by_column,
                           int64_t classes, int64_t side, int64_t distance) {
  const int64_t tokens = classes + side * side;
  const auto row = [&](int64_t from, int64_t to) {
    return std::max(-distance, std::min(distance, to - from)) + distance + 1;
  };
  auto vectors = torch::zeros({tokens, tokens, by_row.size(1)}, by_row.options());
  for (int64_t i = 0; i < tokens; ++i) {
    for (int64_t j = 0; j < tokens; ++j) {
      const int64_t a = i - classes;
      const int64_t b = j - classes;
      const bool is_class = a < 0 || b < 0;
      vectors[i][j] = by_row[is_class ? 0 : row(a / side, b / side)] +
                      by_column[is_class ? 0 : row(a % side, b % side)];
    }
  }
  return vectors;
}

TEST_F(AttentionTest, RelativePositionsAreThoseOfEveryPairOfTokens) {
  for (const int64_t classes : {1, 2}) {
    for (const int64_t distance : {1, 2, 5}) {
      constexpr int64_t kSide = 3;
      const int64_t tokens = classes + kSide * kSide;
      Weights weights;
      std::vector<torch::Tensor> tables;
      for (const char* name : kRelativeTables) {
        tables.push_back(torch::randn({2 * distance + 2, 4}, torch::kFloat64).requires_grad_());
        weights.set(std::string("attn.") + name, tables.back());
      }
      std::vector<torch::Tensor> inputs;
      for (int i = 0; i < 3; ++i) {
        inputs.push_back(torch::randn({2, 3, tokens, 4}, torch::kFloat64).requires_grad_());
      }
      const auto keys = pair_vectors(tables[0], tables[1], classes, kSide, distance);
      const auto values = pair_vectors(tables[2], tables[3], classes, kSide, distance);
      const auto scores = torch::matmul(inputs[0], inputs[1].transpose(2, 3)) +
                          torch::einsum("bhnd,nmd->bhnm", {inputs[0], keys});
      const auto seen = torch::softmax(scores * 0.5, -1);
      const auto wanted =
          torch::matmul(seen, inputs[2]) + torch::einsum("bhnm,nmd->bhnd", {seen, values});
      const auto got =
          relative_attention(weights, "attn.", inputs[0], inputs[1], inputs[2], 0.5, distance, {});
      EXPECT_LT((got - wanted).abs().max().item<double>(), 1e-12) << classes << " " << distance;
      std::vector<torch::Tensor> all = inputs;
      all.insert(all.end(), tables.begin(), tables.end());
      const auto weight = torch::randn_like(got);
      const auto got_grads = torch::autograd::grad({(got * weight).sum()}, all);
      const auto wanted_grads = torch::autograd::grad({(wanted * weight).sum()}, all);
      for (size_t i = 0; i < all.size(); ++i) {
        EXPECT_LT((got_grads[i] - wanted_grads[i]).abs().max().item<double>(), 1e-11) << i;
      }
    }
  }
}

}  // namespace
}  // namespace adjoin::nn
