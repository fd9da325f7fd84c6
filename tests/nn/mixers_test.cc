// Every mixer beside its definition, written out token by token or as a mask on dense attention.
#include <algorithm>
#include <cmath>
#include <limits>

#include "adjoin/nn/attention/linear_attention.h"
#include "adjoin/nn/attention/linformer.h"
#include "adjoin/nn/attention/lsh.h"
#include "adjoin/nn/attention/softmax.h"
#include "adjoin/nn/attention/sparse.h"
#include "adjoin/spec/sparse.h"
#include "support/numeric_gradient.h"
#include "support/seeded_test.h"

namespace adjoin::nn {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

class MixersTest : public SeededTest {
 protected:
  /// q, k and v for so many tokens.
  void draw(int64_t tokens, int64_t dim = 3, int64_t heads = 2, int64_t batch = 2) {
    q = randn64({batch, heads, tokens, dim});
    k = randn64({batch, heads, tokens, dim});
    v = randn64({batch, heads, tokens, dim});
  }

  std::vector<std::pair<std::string, torch::Tensor>> inputs() {
    return {{"q", q}, {"k", k}, {"v", v}};
  }

  torch::Tensor q, k, v;
};

TEST_F(MixersTest, LinformerThatSumsNothingUpIsSoftmaxAttention) {
  draw(7);
  const auto same = torch::eye(7, torch::kFloat64);
  const auto got = linformer_attention(q, k, v, same, same, 0.6);
  EXPECT_TRUE(torch::allclose(got, plain_attention(q, k, v, 0.6, {}), 0, 1e-14));
  const auto per_head = same.expand({2, 7, 7});
  EXPECT_TRUE(
      torch::allclose(linformer_attention(q, k, v, per_head, per_head, 0.6), got, 0, 1e-14));
}

TEST_F(MixersTest, LinformerHasTheGradientOfItsFormula) {
  draw(5, 2);
  const auto e = randn64({2, 5, 3}), f = randn64({2, 5, 3});
  auto all = inputs();
  all.insert(all.end(), {{"e", e}, {"f", f}});
  expect_gradients_match(all, [&] { return linformer_attention(q, k, v, e, f, 0.7); });
}

std::vector<Mixer> sparse_mixers() {
  std::vector<Mixer> mixers;
  for (const bool is_causal : {false, true}) {
    for (const auto part : {SparsePart::kBoth, SparsePart::kLocal, SparsePart::kFar}) {
      for (const int64_t stride : {1, 3, 4, 8}) {
        for (const int64_t band : {0, 2, 4, 9}) {
          mixers.push_back({.kind = MixerKind::kSparseStrided,
                            .stride = stride,
                            .band = band,
                            .part = part,
                            .is_causal = is_causal});
        }
        for (const int64_t columns : {1, 3}) {
          if (columns > stride || (is_causal && part == SparsePart::kFar)) continue;
          mixers.push_back({.kind = MixerKind::kSparseFixed,
                            .stride = stride,
                            .columns = columns,
                            .part = part,
                            .is_causal = is_causal});
        }
      }
    }
  }
  return mixers;
}

TEST_F(MixersTest, SparseAttentionIsDenseAttentionWithAMask) {
  for (const int64_t tokens : {8, 9, 16, 21}) {
    draw(tokens);
    for (const Mixer& mixer : sparse_mixers()) {
      SCOPED_TRACE(to_json(mixer).dump() + " tokens " + std::to_string(tokens));
      auto mask = torch::full({tokens, tokens}, kNever, torch::kFloat64);
      for (int64_t i = 0; i < tokens; ++i) {
        for (int64_t j = 0; j < tokens; ++j) {
          if (sees(mixer, i, j)) mask[i][j] = 0;
        }
      }
      const auto got = sparse_attention(q, k, v, mixer, 0.6, {});
      ASSERT_TRUE(torch::allclose(got, plain_attention(q, k, v, 0.6, mask), 0, 1e-12));
    }
  }
}

TEST_F(MixersTest, SparseAttentionHasTheGradientOfItsFormula) {
  draw(7, 2, 1);
  for (const Mixer& mixer :
       {Mixer{.kind = MixerKind::kSparseStrided, .stride = 3, .band = 2},
        Mixer{.kind = MixerKind::kSparseFixed, .stride = 3, .columns = 1, .is_causal = true}}) {
    expect_gradients_match(inputs(), [&] { return sparse_attention(q, k, v, mixer, 0.6, {}); });
  }
}

/// Attention whose keys are the queries at length one, with a mask of (N, N).
torch::Tensor shared_attention(const torch::Tensor& q, const torch::Tensor& v, double scale,
                               bool is_causal) {
  const auto keys = q / q.norm(2, {-1}, true);
  auto scores = torch::matmul(q * scale, keys.transpose(-2, -1));
  const auto place = torch::arange(q.size(2));
  if (is_causal) {
    scores = scores.masked_fill(place.unsqueeze(0) > place.unsqueeze(1), kNever);
  }
  scores = scores.masked_fill(place.unsqueeze(0) == place.unsqueeze(1), -5e4);
  return torch::matmul(torch::softmax(scores, -1), v);
}

TEST_F(MixersTest, LshOfOneChunkForAllIsSharedAttention) {
  for (const bool is_causal : {false, true}) {
    for (const int64_t tokens : {8, 11}) {
      draw(tokens);
      const Mixer mixer{.kind = MixerKind::kLsh, .chunk = 6, .rounds = 2, .is_causal = is_causal};
      ASSERT_EQ(lsh_chunks(mixer, tokens), 2) << "its own and the one before are all";
      const auto rotations = randn64({2, 3, 1});
      EXPECT_TRUE(torch::allclose(lsh_attention(q, v, rotations, mixer, 0.6),
                                  shared_attention(q, v, 0.6, is_causal), 0, 1e-12));
    }
  }
}

TEST_F(MixersTest, LshOfOneChunkForAllFollowsThePermutationOfItsTokens) {
  draw(8);
  const Mixer mixer{.kind = MixerKind::kLsh, .chunk = 4, .rounds = 3};
  const auto rotations = randn64({3, 3, 1});
  const auto order = torch::randperm(8);
  const auto got =
      lsh_attention(q.index_select(2, order), v.index_select(2, order), rotations, mixer, 0.6);
  const auto wanted = lsh_attention(q, v, rotations, mixer, 0.6).index_select(2, order);
  EXPECT_TRUE(torch::allclose(got, wanted, 0, 1e-12));
}

/// One head of LSH attention, (N, d), token by token.
torch::Tensor lsh_by_hand(const torch::Tensor& q, const torch::Tensor& v,
                          const torch::Tensor& rotations, const Mixer& mixer, double scale) {
  const int64_t tokens = q.size(0);
  const int64_t chunks = lsh_chunks(mixer, tokens);
  auto out = torch::zeros_like(v);
  std::vector<std::vector<double>> found(static_cast<size_t>(tokens));
  std::vector<std::vector<torch::Tensor>> mixed(static_cast<size_t>(tokens));
  for (int64_t round = 0; round < mixer.rounds; ++round) {
    const auto turned = torch::matmul(q, rotations[round]);
    const auto bucket = torch::cat({turned, -turned}, 1).argmax(1);
    std::vector<int64_t> order;
    for (int64_t i = 0; i < tokens; ++i) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return bucket[a].item<int64_t>() < bucket[b].item<int64_t>();
    });
    std::vector<int64_t> chunk_of(static_cast<size_t>(tokens));
    for (size_t place = 0; place < order.size(); ++place) {
      chunk_of[static_cast<size_t>(order[place])] = static_cast<int64_t>(place) / mixer.chunk;
    }
    for (int64_t i = 0; i < tokens; ++i) {
      const int64_t own = chunk_of[static_cast<size_t>(i)];
      std::vector<double> scores;
      std::vector<torch::Tensor> values;
      for (int64_t j = 0; j < tokens; ++j) {
        const int64_t other = chunk_of[static_cast<size_t>(j)];
        if (other != own && other != (own + chunks - 1) % chunks) continue;
        if (mixer.is_causal && j > i) continue;
        const double score = (q[i] * q[j]).sum().item<double>() / q[j].norm().item<double>();
        scores.push_back(i == j ? -5e4 : score * scale);
        values.push_back(v[j]);
      }
      const auto all = torch::tensor(scores, torch::kFloat64);
      found[static_cast<size_t>(i)].push_back(torch::logsumexp(all, {0}).item<double>());
      mixed[static_cast<size_t>(i)].push_back(
          torch::matmul(torch::softmax(all, 0), torch::stack(values)));
    }
  }
  for (int64_t i = 0; i < tokens; ++i) {
    const auto share =
        torch::softmax(torch::tensor(found[static_cast<size_t>(i)], torch::kFloat64), 0);
    out[i] = torch::matmul(share, torch::stack(mixed[static_cast<size_t>(i)]));
  }
  return out;
}

TEST_F(MixersTest, LshSeesItsChunkAndTheOneBeforeInTheOrderOfItsHash) {
  for (const bool is_causal : {false, true}) {
    for (const auto& [tokens, chunk] : {std::pair{12, 3}, {13, 2}, {17, 4}, {6, 1}}) {
      draw(tokens, 4);
      const Mixer mixer{
          .kind = MixerKind::kLsh, .chunk = chunk, .rounds = 3, .is_causal = is_causal};
      const auto rotations = randn64({3, 4, lsh_chunks(mixer, tokens) / 2});
      const auto got = lsh_attention(q, v, rotations, mixer, 0.5);
      for (int64_t b = 0; b < 2; ++b) {
        for (int64_t h = 0; h < 2; ++h) {
          const auto wanted = lsh_by_hand(q[b][h], v[b][h], rotations, mixer, 0.5);
          ASSERT_TRUE(torch::allclose(got[b][h], wanted, 0, 1e-11)) << tokens << " " << chunk;
        }
      }
    }
  }
}

TEST_F(MixersTest, LshHasTheGradientOfItsFormula) {
  draw(7, 2, 1, 1);
  const Mixer mixer{.kind = MixerKind::kLsh, .chunk = 2, .rounds = 2};
  const auto rotations = randn64({2, 2, 2});
  expect_gradients_match({{"q", q}, {"v", v}},
                         [&] { return lsh_attention(q, v, rotations, mixer, 0.6); });
}

/// sum over j of f(q_i) f(k_j) v_j, divided by the sum of f(q_i) f(k_j).
torch::Tensor linear_by_pairs(const torch::Tensor& q, const torch::Tensor& k,
                              const torch::Tensor& v, bool is_causal) {
  auto pairs = torch::matmul(torch::elu(q) + 1, (torch::elu(k) + 1).transpose(-2, -1));
  if (is_causal) pairs = pairs.tril();
  return torch::matmul(pairs, v) / (pairs.sum(-1, true) + kLinearEps);
}

TEST_F(MixersTest, LinearAttentionIsTheSumOverPairsAndRecurrentIsTheSame) {
  for (const int64_t tokens : {1, 7, 64, 65, 200}) {
    draw(tokens, 3, 2, 1);
    for (const bool is_causal : {false, true}) {
      const auto wanted = linear_by_pairs(q, k, v, is_causal);
      for (const auto kind : {MixerKind::kLinear, MixerKind::kRecurrent}) {
        const auto got = linear_attention(q, k, v, {.kind = kind, .is_causal = is_causal});
        EXPECT_TRUE(torch::allclose(got, wanted, 0, 1e-12)) << tokens << " " << is_causal;
      }
    }
  }
}

TEST_F(MixersTest, LinearAttentionHasTheGradientOfItsFormula) {
  for (const auto kind : {MixerKind::kLinear, MixerKind::kRecurrent}) {
    for (const bool is_causal : {false, true}) {
      draw(5, 2, 1);
      expect_gradients_match(inputs(), [&] {
        return linear_attention(q, k, v, {.kind = kind, .is_causal = is_causal});
      });
    }
  }
}

TEST_F(MixersTest, LinearAttentionInGroupsHasTheGradientOfTheSumOverPairs) {
  draw(70, 2, 1, 1);
  for (auto& x : {q, k, v}) x.requires_grad_(true);
  const auto weights = randn64(v.sizes());
  const auto gradients = [&](const torch::Tensor& out) {
    return torch::autograd::grad({(out * weights).sum()}, {q, k, v});
  };
  const auto got =
      gradients(linear_attention(q, k, v, {.kind = MixerKind::kLinear, .is_causal = true}));
  const auto wanted = gradients(linear_by_pairs(q, k, v, true));
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(torch::allclose(got[i], wanted[i], 0, 1e-10)) << i;
}

}  // namespace
}  // namespace adjoin::nn
