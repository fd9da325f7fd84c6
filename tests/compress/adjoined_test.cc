#include "adjoin/compress/adjoined.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cmath>

#include "adjoin/compress/job.h"
#include "adjoin/core/rng.h"
#include "adjoin/models/forward.h"
#include "adjoin/models/init.h"
#include "adjoin/models/slice.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/tensor/memory_watch.h"
#include "adjoin/train/trainer.h"
#include "models/laws.h"
#include "support/numeric_gradient.h"
#include "support/random_choice.h"
#include "support/random_weights.h"
#include "support/seeded_test.h"

namespace adjoin::compress {
namespace {

using train::InnerNetwork;
using train::Networks;
using train::Parameters;
using train::Trainer;

double value(const torch::Tensor& t) { return t.item<double>(); }
double gap(const torch::Tensor& a, const torch::Tensor& b) { return value((a - b).abs().max()); }

torch::Tensor row(std::vector<double> numbers) {
  return torch::tensor(numbers, torch::kFloat64).unsqueeze(0);
}

// Values of methods.md B.4.
TEST(AnswerDistanceTest, HasTheValueAndGradientsOfTheMethod) {
  const auto p = row({2, 1, 0.1}).requires_grad_(true);
  const auto q = row({1, 1.5, -0.5}).requires_grad_(true);
  const auto distance = answer_distance({}, p, q);
  EXPECT_NEAR(value(distance), 0.23485109, 1e-8);
  distance.backward();
  EXPECT_LT(gap(q.grad(), row({-0.31079371, 0.33166402, -0.02087031})), 1e-8);
  EXPECT_LT(gap(p.grad(), row({0.26562742, -0.26593059, 0.00030317})), 1e-8);
}

TEST(AnswerDistanceTest, ADetachedTeacherGetsNoGradient) {
  const auto p = row({2, 1, 0.1}).requires_grad_(true);
  const auto q = row({1, 1.5, -0.5}).requires_grad_(true);
  AdjoinedOptions options;
  options.detach_teacher = true;
  answer_distance(options, p, q).backward();
  EXPECT_FALSE(p.grad().defined());
  EXPECT_LT(gap(q.grad(), row({-0.31079371, 0.33166402, -0.02087031})), 1e-8);
}

TEST(AnswerDistanceTest, SymmetricIsTheMeanOfBothWaysAndTemperatureKeepsTheGradientsSize) {
  const auto p = row({2, 1, 0.1});
  const auto q = row({1, 1.5, -0.5});
  AdjoinedOptions options;
  options.kl = KlKind::kSymmetric;
  EXPECT_NEAR(value(answer_distance(options, p, q)),
              (value(answer_distance({}, p, q)) + value(answer_distance({}, q, p))) / 2, 1e-15);
  AdjoinedOptions hot;
  hot.kl_tau = 4;
  EXPECT_NEAR(value(answer_distance(hot, p, q)), 16 * value(answer_distance({}, p / 4, q / 4)),
              1e-14);
}

TEST(AnswerDistanceTest, GradientsMatchCentralDifferences) {
  torch::manual_seed(3);
  const auto p = torch::randn({3, 5}, torch::kFloat64);
  const auto q = torch::randn({3, 5}, torch::kFloat64);
  for (const KlKind kind : {KlKind::kForward, KlKind::kSymmetric}) {
    AdjoinedOptions options;
    options.kl = kind;
    options.kl_tau = 1.5;
    expect_gradients_match(
        {{"large", p}, {"small", q}}, [&] { return answer_distance(options, p, q); }, 1e-6);
  }
}

TEST(LambdaTest, RisesAsItsNameSays) {
  constexpr int64_t kEpochs = 10;
  const auto at = [&](LambdaKind kind, int64_t epoch, double most = 1) {
    AdjoinedOptions options;
    options.lambda = kind;
    options.lambda_max = most;
    const double t = static_cast<double>(epoch) / kEpochs;
    const double lambda = value(lambda_at(options, torch::tensor(t, torch::kFloat64), kEpochs));
    EXPECT_EQ(is_lambda_full(options, t, kEpochs), lambda == most);
    return lambda;
  };
  const std::vector<double> quadratic = {0, 0.04, 0.16, 0.36, 0.64, 1, 1, 1, 1, 1};
  for (int64_t e = 0; e < kEpochs; ++e) {
    const double now = quadratic[static_cast<size_t>(e)];
    EXPECT_NEAR(at(LambdaKind::kQuadratic, e), now, 1e-12) << e;
    EXPECT_NEAR(at(LambdaKind::kQuadratic, e, 0.5), now / 2, 1e-12) << e;
    EXPECT_NEAR(at(LambdaKind::kLagged, e), e == 0 ? 0 : quadratic[static_cast<size_t>(e - 1)],
                1e-12)
        << e;
    EXPECT_NEAR(at(LambdaKind::kLinear, e), std::min(0.2 * static_cast<double>(e), 1.0), 1e-12);
    EXPECT_EQ(at(LambdaKind::kConstant, e), 1);
  }
}

/// What the large network learns by in a test: logits that were computed elsewhere.
class GivenAnswers : public train::Objective {
 public:
  explicit GivenAnswers(torch::Tensor logits) : logits_(std::move(logits)) {}
  train::Loss operator()(const std::vector<train::Branch>& /*networks*/,
                         const data::Batch& /*batch*/,
                         const torch::Tensor& /*time*/) const override {
    return {torch::zeros({}, logits_.options()), {logits_}};
  }

 private:
  torch::Tensor logits_;
};

data::Batch batch_for(const ModelSpec& spec, int64_t size) {
  data::Batch batch;
  batch.images = models::images_for(spec, size).to(torch::kFloat64);
  batch.labels = torch::randint(spec.num_classes, {size});
  batch.targets = torch::softmax(torch::randn({size, spec.num_classes}, torch::kFloat64), -1);
  return batch;
}

AdjoinedOptions from_the_start() {
  AdjoinedOptions options;
  options.lambda = LambdaKind::kConstant;
  options.lambda_max = 0.7;
  return options;
}

struct FamilyCase {
  uint64_t family;
  Geometry geometry;
};

class AdjoinedTest : public SeededTest, public testing::WithParamInterface<FamilyCase> {
 protected:
  /// A random large network with two random small ones inside; the second has norms of its own.
  Networks random_networks(uint64_t seed) {
    const auto factor = static_cast<int64_t>(2 + seed % 2);
    ModelSpec large = random_divisible_spec(seed, GetParam().family, factor);
    // Performer layers drop values, and tied copies would drop others.
    if (auto* t2t = std::get_if<T2tSpec>(&large.family))
      t2t->tokens.kind = TokensKind::kTransformer;
    Networks networks{large, random_weights(large, torch::kFloat64)};
    for (const uint64_t which : {0, 1}) {
      const Choice choice = random_choice(large, GetParam().geometry, factor, 2 * seed + which);
      networks.inner.push_back(
          {"small-" + std::to_string(which), derive(large, choice, GetParam().geometry), {}});
    }
    InnerNetwork& second = networks.inner[1];
    for (Source& source : second.derived.sources) {
      if (source.tensor.name.find("norm") == std::string::npos) continue;
      source.slice.reset();
      second.own.set(source.tensor.name, torch::randn(source.tensor.shape(), torch::kFloat64));
    }
    return networks;
  }

  /// As the trainer draws in its first step.
  static nn::Context first_step() {
    nn::Context context;
    context.is_training = true;
    auto rng = at::detail::createCPUGenerator();
    rng.set_current_seed(stream_key(0, {0x73746570, 0, 0, 0}));
    context.rng = rng;
    return context;
  }

  static Parameters parameters_of(const Networks& networks) {
    return {networks.spec, networks.start, networks.inner, torch::kCPU, torch::kFloat64};
  }

  train::Compute compute{torch::kCPU, torch::kFloat64};
  train::TrainConfig config;
  train::Group group;
  torch::Tensor now = torch::zeros({}, torch::kFloat64);
};

TEST_P(AdjoinedTest, GradientsAreTheSumOfThoseOfDenseNetworksWithTiedCopies) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Networks networks = random_networks(seed);
    SCOPED_TRACE(networks.spec.name);
    const data::Batch batch = batch_for(networks.spec, 3);
    const AdjoinedObjective objective(from_the_start(), std::make_unique<train::PlainObjective>(),
                                      {"a", "b"}, 1);
    Trainer trainer(networks, config, objective, compute, group);
    trainer.step(batch, {3, 0, /*lr=*/0});

    // The same as three networks that share nothing.
    const Parameters& parameters = trainer.parameters();
    const auto specs = std::vector{&networks.spec, &networks.inner[0].derived.spec,
                                   &networks.inner[1].derived.spec};
    std::vector<Weights> dense;
    for (size_t i = 0; i < 3; ++i) {
      const Weights views = parameters.weights_in(parameters.values(), i);
      Weights& own = dense.emplace_back();
      for (const TensorInfo& info : tensors(*specs[i])) {
        own.set(info.name, views.at(info.name).reshape(info.shape()).clone());
      }
      models::require_gradients(*specs[i], own);
    }
    std::vector<train::Branch> branches;
    const nn::Context context = first_step();
    for (size_t i = 0; i < 3; ++i) branches.push_back({*specs[i], dense[i], context});
    objective(branches, batch, now).value.backward();
    auto expected = torch::zeros_like(parameters.gradients());
    for (size_t i = 0; i < 3; ++i) {
      const Weights places = parameters.weights_in(expected, i);
      for (const TensorInfo& info : tensors(*specs[i])) {
        if (!info.is_trained) continue;
        const auto place = places.at(info.name);
        torch::Tensor(place).add_(dense[i].at(info.name).grad().reshape(place.sizes()));
      }
    }
    EXPECT_GT(value(expected.abs().max()), 1e-4);
    EXPECT_LT(gap(parameters.gradients(), expected) / value(expected.abs().max()), 1e-9);
  }
}

TEST_P(AdjoinedTest, ASmallBranchNeverReadsOutsideItsSlicesInTraining) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Networks networks = random_networks(seed);
    networks.inner.resize(1);
    SCOPED_TRACE(networks.spec.name);
    const Parameters parameters = parameters_of(networks);
    const data::Batch batch = batch_for(networks.spec, 2);
    AdjoinedOptions options = from_the_start();
    options.detach_teacher = true;
    const AdjoinedObjective objective(
        options, std::make_unique<GivenAnswers>(torch::randn_like(batch.targets)), {"small"}, 1);
    const auto gradients_with = [&](bool is_poisoned) {
      const torch::Tensor values = parameters.values();
      if (is_poisoned) {
        const torch::NoGradGuard no_grad;
        auto poison = torch::full_like(values, NAN);
        const Weights kept = parameters.weights_in(poison, 1);
        for (const auto& [name, tensor] : parameters.weights_in(values, 1)) {
          if (!tensor.is_alias_of(values)) continue;
          torch::Tensor(kept.at(name)).copy_(tensor);
        }
        values.copy_(poison);
      }
      parameters.gradients().zero_();
      std::vector<train::Branch> branches;
      const nn::Context context = first_step();
      branches.push_back({networks.spec, parameters.weights(), context});
      branches.push_back({networks.inner[0].derived.spec, parameters.weights(1), context});
      objective(branches, batch, now).value.backward();
      return parameters.gradients().clone();
    };
    const auto clean = gradients_with(false);
    const auto poisoned = gradients_with(true);
    EXPECT_TRUE(poisoned.isfinite().all().item<bool>());
    EXPECT_TRUE(torch::equal(clean, poisoned));
    EXPECT_GT(value(clean.abs().max()), 0);
    // What no slice covers has no gradient: that would come through the large network's answer.
    auto covered = torch::zeros_like(clean);
    for (const auto& [name, place] : parameters.weights_in(covered, 1)) {
      if (place.is_alias_of(covered)) torch::Tensor(place).fill_(1);
    }
    EXPECT_EQ(value((clean * (1 - covered)).abs().max()), 0);
  }
}

TEST_P(AdjoinedTest, TheLargeNetworkAndTheSmallOnesLearnABatchByHeart) {
  const std::string name = std::vector<std::string>{"vit", "t2t", "swin"}[GetParam().family];
  const ModelSpec spec = catalog_spec(name + "_mini_28");
  const Networks networks{
      spec,
      models::init(spec, 0),
      {{"small", derive(spec, choice_from_alphas(spec, {2}), GetParam().geometry), {}}}};
  data::Batch batch;
  batch.images = models::images_for(spec, 8);
  batch.labels = torch::arange(8).remainder(2);  // two classes of ten
  batch.targets = torch::one_hot(batch.labels, spec.num_classes).to(torch::kFloat32);
  const AdjoinedObjective objective({}, std::make_unique<train::PlainObjective>(), {"small"}, 10);
  Trainer trainer(networks, config, objective, {torch::kCPU, torch::kFloat32}, group);
  for (int64_t i = 0; i < 40; ++i) trainer.step(batch, {8, i, 2e-3, static_cast<double>(i) / 40});
  trainer.read();
  trainer.step(batch, {8, 40, 0, 1});
  EXPECT_EQ(trainer.read().accuracy, (std::vector<double>{100, 100}));
}

TEST_P(AdjoinedTest, WhatIsExtractedAnswersAsTheBranchDid) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Networks networks = random_networks(seed);
    SCOPED_TRACE(networks.spec.name);
    const data::Batch batch = batch_for(networks.spec, 2);
    const AdjoinedObjective objective(from_the_start(), std::make_unique<train::PlainObjective>(),
                                      {"a", "b"}, 1);
    Trainer trainer(networks, config, objective, compute, group);
    for (int64_t i = 0; i < 2; ++i) trainer.step(batch, {2, i, 1e-3});
    for (size_t i = 1; i < 3; ++i) {
      const Derived& derived = networks.inner[i - 1].derived;
      const Weights branch = trainer.parameters().weights(i);
      const Weights file = models::plain(derived, trainer.judged_weights(i));
      for (const TensorInfo& info : tensors(derived.spec)) {
        ASSERT_EQ(file.at(info.name).sizes(), info.shape()) << info.name;
      }
      const torch::NoGradGuard no_grad;
      EXPECT_LT(gap(models::forward(derived.spec, file, batch.images).logits(),
                    models::forward(derived.spec, branch, batch.images).logits()),
                1e-6);
    }
  }
}

TEST_P(AdjoinedTest, AlphaOneAnswersAsTheLargeNetworkDoes) {
  const ModelSpec spec = random_divisible_spec(5, GetParam().family, 2);
  const Networks networks{
      spec,
      random_weights(spec, torch::kFloat64),
      {{"small", derive(spec, choice_from_alphas(spec, {1}), GetParam().geometry), {}}}};
  const AdjoinedObjective objective(from_the_start(), std::make_unique<train::PlainObjective>(),
                                    {"small"}, 1);
  const Parameters parameters = parameters_of(networks);
  std::vector<train::Branch> branches;
  branches.push_back({spec, parameters.weights(), {}});
  branches.push_back({networks.inner[0].derived.spec, parameters.weights(1), {}});
  const train::Loss loss = objective(branches, batch_for(spec, 3), now);
  EXPECT_TRUE(torch::equal(loss.logits[0], loss.logits[1]));
  EXPECT_EQ(value(loss.terms[1]), 0);
}

TEST_P(AdjoinedTest, PartsOfABatchAndRecomputedBlocksGiveTheGradientOfTheWhole) {
  Networks networks = random_networks(3);
  const auto keep_all = [](BlockSpec& block) { block.drop_path = 0; };
  for_each_block(networks.spec, keep_all);
  for (InnerNetwork& inner : networks.inner) for_each_block(inner.derived.spec, keep_all);
  const data::Batch batch = batch_for(networks.spec, 6);
  const AdjoinedObjective objective(from_the_start(), std::make_unique<train::PlainObjective>(),
                                    {"a", "b"}, 1);
  const auto gradients = [&](int64_t parts) {
    config.grad_accum_steps = parts;
    Trainer trainer(networks, config, objective, compute, group);
    trainer.step(batch, {6, 0, 0});
    return trainer.parameters().gradients().clone();
  };
  const auto whole = gradients(1);
  EXPECT_LT(gap(gradients(3), whole) / value(whole.abs().max()), 1e-12);
  config.grad_checkpointing = true;
  EXPECT_LT(gap(gradients(1), whole) / value(whole.abs().max()), 1e-12);
}

std::string case_name(const testing::TestParamInfo<FamilyCase>& one) {
  constexpr const char* kFamilies[] = {"vit", "t2t", "swin"};
  return std::string(kFamilies[one.param.family]) + "_" +
         std::string(enum_name(one.param.geometry));
}

INSTANTIATE_TEST_SUITE_P(
    Families, AdjoinedTest,
    testing::Values(FamilyCase{0, Geometry::kKept}, FamilyCase{0, Geometry::kNarrow},
                    FamilyCase{1, Geometry::kKept}, FamilyCase{1, Geometry::kNarrow},
                    FamilyCase{2, Geometry::kKept}, FamilyCase{2, Geometry::kNarrow}),
    case_name);

class MemoryTest : public SeededTest, public testing::WithParamInterface<const char*> {};

TEST_P(MemoryTest, TheSmallBranchTakesLittleMoreThanTheSmallNetworkAlone) {
  const ModelSpec spec = catalog_spec(GetParam());
  const Derived small = derive(spec, choice_from_alphas(spec, {4}), Geometry::kKept);
  const train::TrainConfig config;
  const train::PlainObjective plain;
  const AdjoinedObjective adjoined(from_the_start(), std::make_unique<train::PlainObjective>(),
                                   {"small"}, 1);
  train::Group group;
  const train::Compute compute{torch::kCPU, torch::kFloat32};
  data::Batch batch = batch_for(spec, 16);
  batch.images = batch.images.to(torch::kFloat32);
  batch.targets = batch.targets.to(torch::kFloat32);
  MemoryWatch watch;
  const auto peak = [&](const Networks& networks, const train::Objective& objective) {
    Trainer trainer(networks, config, objective, compute, group);
    trainer.step(batch, {16, 0, 1e-3});
    watch.reset();
    trainer.step(batch, {16, 1, 1e-3});
    return static_cast<double>(watch.peak());
  };
  const Weights start = models::init(spec, 0);
  const double large = peak({spec, start}, plain);
  const double alone = peak({small.spec, models::copies(small, start)}, plain);
  const double both = peak({spec, start, {{"small", small, {}}}}, adjoined);
  EXPECT_GT(alone, 1e5);
  EXPECT_LE(both - large, 1.2 * alone) << large << " " << alone << " " << both;
}

INSTANTIATE_TEST_SUITE_P(Minis, MemoryTest,
                         testing::Values("vit_mini_32", "t2t_mini_32", "swin_mini_32"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace adjoin::compress
