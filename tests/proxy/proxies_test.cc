#include "adjoin/proxy/proxies.h"

#include <gtest/gtest.h>

#include <cmath>

#include "adjoin/models/init.h"
#include "adjoin/proxy/dss.h"
#include "adjoin/proxy/fisher.h"
#include "adjoin/proxy/grad_norm.h"
#include "adjoin/proxy/grasp.h"
#include "adjoin/proxy/jacob_cov.h"
#include "adjoin/proxy/naswot.h"
#include "adjoin/proxy/snip.h"
#include "adjoin/proxy/synflow.h"
#include "adjoin/proxy/zico.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/overrides.h"
#include "support/expect_error.h"
#include "support/seeded_test.h"

namespace adjoin::proxy {
namespace {

TensorInfo layer(const std::string& name, int64_t out, int64_t in) {
  return {name, {whole(out), whole(in)}, {}, true, true};
}

double number(const torch::Tensor& t) { return t.item<double>(); }

/// logits = x W^T, x of three numbers, two classes.
Subject linear_subject(const torch::Tensor& weight) {
  Subject subject;
  subject.tensors = {layer("fc.weight", 2, 3)};
  subject.weights.set("fc.weight", weight);
  subject.logits = [](const Weights& weights, const torch::Tensor& x, const nn::Context&) {
    return torch::matmul(x, weights.at("fc.weight").t());
  };
  return subject;
}

class ProxyTest : public SeededTest {
 protected:
  const torch::Tensor weight =
      torch::tensor({1.0, -2.0, 0.5, 0.0, 1.0, 1.0}).to(torch::kFloat64).view({2, 3});
  const torch::Tensor images =
      torch::tensor({1.0, 0.0, 2.0, -1.0, 1.0, 0.0}).to(torch::kFloat64).view({2, 3});
  const torch::Tensor labels = torch::tensor({0, 1});

  /// (softmax - one hot)^T x / B
  torch::Tensor gradient_by_hand() const {
    const auto p = images.matmul(weight.t()).softmax(1);
    return (p - torch::one_hot(labels, 2)).t().matmul(images) / 2;
  }
};

TEST_F(ProxyTest, OfALinearModelAreWhatTheHandComputes) {
  Probe probe(linear_subject(weight), {{images, labels}});
  const auto gradient = gradient_by_hand();
  EXPECT_NEAR(grad_norm(probe), number(gradient.norm()), 1e-12);
  EXPECT_NEAR(grad_norm_layers(probe), number(gradient.norm()), 1e-12);
  EXPECT_NEAR(snip(probe), number((weight * gradient).abs().sum()), 1e-12);
  EXPECT_NEAR(snip_weights(probe), number((weight * gradient).abs().sum()), 1e-12);
  EXPECT_NEAR(synflow(probe), number(weight.abs().sum()), 1e-12);  // R = sum |W|
}

TEST_F(ProxyTest, SnipIsTheGradientOfAMask) {
  auto mask = torch::ones_like(weight).requires_grad_(true);
  const auto loss =
      torch::nn::functional::cross_entropy(images.matmul((weight * mask).t()), labels);
  loss.backward();
  Probe probe(linear_subject(weight), {{images, labels}});
  EXPECT_NEAR(snip(probe), number(mask.grad().abs().sum()), 1e-12);
}

TEST_F(ProxyTest, SynflowIsConservedFromLayerToLayerWithoutNormsAndBiases) {
  Subject subject;
  subject.tensors = {layer("a.weight", 5, 3), layer("b.weight", 4, 5), layer("c.weight", 2, 4)};
  for (const TensorInfo& info : subject.tensors)
    subject.weights.set(info.name, randn64(info.shape()));
  subject.logits = [](const Weights& w, const torch::Tensor& x, const nn::Context&) {
    const auto a = torch::relu(torch::matmul(x, w.at("a.weight").t()));
    return torch::matmul(torch::relu(torch::matmul(a, w.at("b.weight").t())), w.at("c.weight").t());
  };
  Probe probe(subject, {{images, labels}});
  const auto& pulls = probe.flow(false);
  const auto sum = [](const Pull& pull) { return number((pull.value * pull.gradient).sum()); };
  EXPECT_NEAR(sum(pulls[0]), sum(pulls[1]), 1e-12);
  EXPECT_NEAR(sum(pulls[1]), sum(pulls[2]), 1e-12);
  EXPECT_NEAR(synflow_no_norm(probe), 3 * sum(pulls[0]), 1e-11);
}

TEST_F(ProxyTest, GradientsOfALinearModelAreAlikeForAllImages) {
  Probe probe(linear_subject(weight), {{images, labels}});
  // The correlations are all 1: eigenvalues 2 and 0.
  const double expected = -(std::log(2 + 1e-5) + 1 / (2 + 1e-5) + std::log(1e-5) + 1e5);
  EXPECT_NEAR(jacob_cov(probe), expected, 1e-2);
}

TEST_F(ProxyTest, NaswotCountsUnitsThatAgree) {
  Subject subject = linear_subject(weight);
  subject.activations = [](const Weights&, const torch::Tensor&) {
    return std::vector<torch::Tensor>{torch::tensor({1.0, -1.0, 2.0, 1.0, 1.0, -3.0}).view({2, 3})};
  };
  Probe probe(subject, {{images, labels}});
  // Three units: each image agrees with itself in 3, with the other in 1.
  EXPECT_NEAR(naswot(probe), std::log(3.0 * 3 - 1), 1e-12);
}

TEST_F(ProxyTest, ZicoIsTheMeanOfGradientsByTheirDeviation) {
  const auto other =
      torch::tensor({0.5, 1.0, -1.0, 2.0, 0.0, 1.0}).to(torch::kFloat64).view({2, 3});
  Probe probe(linear_subject(weight), {{images, labels}, {other, labels}});
  const auto a = probe.pulls(0)[0].gradient.abs();
  const auto b = probe.pulls(1)[0].gradient.abs();
  const auto mean = (a + b) / 2;
  const auto deviation = (a - b).abs() / 2;
  EXPECT_NEAR(zico(probe), std::log(number((mean / deviation).sum())), 1e-9);
}

// Tokens are summed, channels are kept apart.
TEST_F(ProxyTest, FisherSumsActivationTimesGradientOverTokens) {
  const auto bias = randn64({4});
  const auto first = randn64({4, 3});
  const auto second = randn64({2, 4});
  Subject subject;
  subject.tensors = {
      layer("a.weight", 4, 3), {"a.bias", {whole(4)}, {}, false, true}, layer("head.weight", 2, 4)};
  subject.weights.set("a.weight", first);
  subject.weights.set("a.bias", bias);
  subject.weights.set("head.weight", second);
  const auto hidden = [](const Weights& w, const torch::Tensor& x) {
    return torch::linear(x, w.at("a.weight"), w.at("a.bias"));  // (B, N, 4)
  };
  subject.logits = [&](const Weights& w, const torch::Tensor& x, const nn::Context&) {
    return torch::matmul(torch::gelu(hidden(w, x)).mean(1), w.at("head.weight").t());
  };
  const auto tokens = randn64({5, 7, 3});
  const auto marks = torch::tensor({0, 1, 1, 0, 1});
  Probe probe(subject, {{tokens, marks}});

  const auto a = hidden(subject.weights, tokens).detach().requires_grad_(true);
  const auto logits = torch::matmul(torch::gelu(a).mean(1), second.t());
  logits.retain_grad();
  const auto out = logits.detach().requires_grad_(true);
  torch::nn::functional::cross_entropy(logits, marks).backward();
  torch::nn::functional::cross_entropy(out, marks).backward();
  const auto half_mean = [](const torch::Tensor& per_image) {
    return per_image.square().mean(0).sum() / 2;
  };
  const double expected = 3 * number(half_mean((a.detach() * a.grad()).sum(1))) +
                          4 * number(half_mean(out.detach() * out.grad()));
  EXPECT_NEAR(fisher(probe), expected, 1e-12);
}

/// A small network of a family, float64, with a batch.
struct Judged {
  explicit Judged(const std::string& model)
      : spec(with_overrides(catalog_spec(model), {{"num_classes", "7"}})),
        weights(models::init(spec, 3).to(torch::kCPU, torch::kFloat64)) {
    for (int i = 0; i < 2; ++i) {
      batches.push_back(
          {randn64({4, spec.in_chans, spec.img_size, spec.img_size}), torch::randint(7, {4})});
    }
  }
  Probe probe() const { return {subject_of(spec, weights), batches}; }

  ModelSpec spec;
  Weights weights;
  std::vector<Sample> batches;
};

class FamilyTest : public testing::TestWithParam<const char*> {
 protected:
  FamilyTest() { torch::manual_seed(2); }
};
INSTANTIATE_TEST_SUITE_P(Minis, FamilyTest,
                         testing::Values("vit_mini_28", "t2t_mini_28", "swin_mini_28"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(FamilyTest, EveryProxyIsFiniteAndDoesNotCareForTheOrderOfImages) {
  const Judged judged(GetParam());
  Judged turned = judged;
  for (Sample& batch : turned.batches) {
    batch = {batch.images.flip(0).clone(), batch.labels.flip(0).clone()};
  }
  Probe one = judged.probe();
  Probe two = turned.probe();
  for (const Proxy& proxy : proxies()) {
    const double score = proxy.score(one);
    EXPECT_TRUE(std::isfinite(score)) << proxy.name;
    EXPECT_NEAR(score, proxy.score(two), 1e-7 * std::max(1.0, std::abs(score))) << proxy.name;
  }
  EXPECT_NE(synflow(one), synflow_no_norm(one));
}

TEST_P(FamilyTest, GraspsHessianProductMatchesDifferences) {
  const Judged judged(GetParam());
  Probe probe = judged.probe();
  constexpr double kStep = 1e-5;
  const auto moved = [&](double by) {
    Weights weights;
    for (const Pull& pull : probe.pulls()) {
      const bool is_moved = is_layer_weight(*pull.info);
      weights.set(pull.info->name, is_moved ? pull.value + pull.gradient * by : pull.value.clone());
    }
    for (const TensorInfo& info : probe.subject().tensors) {
      if (!info.is_trained) weights.set(info.name, judged.weights.at(info.name));
    }
    return Probe(subject_of(judged.spec, weights), judged.batches);
  };
  Probe above = moved(kStep);
  Probe below = moved(-kStep);
  double expected = 0;
  for (size_t i = 0; i < probe.pulls().size(); ++i) {
    const Pull& pull = probe.pulls()[i];
    if (!is_layer_weight(*pull.info)) continue;
    const auto product = (above.pulls()[i].gradient - below.pulls()[i].gradient) / (2 * kStep);
    expected -= number((pull.value * product).sum());
  }
  EXPECT_NEAR(grasp(probe), expected, 1e-5 * std::max(1e-3, std::abs(expected)));
}

TEST_P(FamilyTest, DssTakesNuclearNormsOfAttentionAndSaliencyOfTheRest) {
  const Judged judged(GetParam());
  Probe probe = judged.probe();
  double expected = 0;
  for (const Pull& pull : probe.flow(true)) {
    const std::string& name = pull.info->name;
    if (!is_layer_weight(*pull.info) || pull.value.dim() != 2) continue;
    const auto nuclear = [](const torch::Tensor& matrix) {
      return number(std::get<1>(torch::svd(matrix)).sum());
    };
    const bool is_attention =
        name.ends_with("attn.qkv.weight") || name.ends_with("attn.proj.weight");
    expected += is_attention ? nuclear(pull.value) * nuclear(pull.gradient)
                             : number((pull.value * pull.gradient).abs().sum());
  }
  EXPECT_NEAR(dss(probe), expected, 1e-9 * expected);
}

TEST(ProxiesTest, AnUnknownNameGetsTheList) {
  expect_error(ErrorKind::kUsage, {"snap", "grad_norm", "snip", "params"},
               [] { proxy_called("snap"); });
  EXPECT_EQ(proxy_called("zico").batches, 2U);
}

}  // namespace
}  // namespace adjoin::proxy
