#include "adjoin/search/dan.h"

#include <gtest/gtest.h>

#include <cmath>

#include "adjoin/models/init.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/overrides.h"
#include "support/gap.h"
#include "support/random_weights.h"
#include "support/seeded_test.h"

namespace adjoin::search {
namespace {

const ModelSpec& tiny() {
  static const ModelSpec spec = with_overrides(
      catalog_spec("vit_mini_28"), {{"depth", "3"}, {"embed_dim", "32"}, {"mlp_ratio", "2"}});
  return spec;
}

std::shared_ptr<const Dan> dan_of(const ModelSpec& spec, const Target& target,
                                  const DanOptions& options) {
  const Space space(spec, {});
  return std::make_shared<Dan>(space, space, target, options, 3, torch::kCPU);
}

data::Batch random_batch(const ModelSpec& spec, int64_t size) {
  data::Batch batch;
  batch.images = randn64({size, spec.in_chans, spec.img_size, spec.img_size});
  batch.labels = torch::randint(spec.num_classes, {size});
  batch.targets = torch::one_hot(batch.labels, spec.num_classes).to(torch::kFloat64);
  return batch;
}

compress::AdjoinedOptions at_once() {
  compress::AdjoinedOptions options;
  options.lambda = compress::LambdaKind::kConstant;
  return options;
}

/// A search of a tiny network, step by step.
class Searcher {
 public:
  Searcher(const ModelSpec& spec, const Target& target, DanOptions options)
      : dan_(dan_of(spec, target, options)),
        objective_(dan_, at_once(), std::make_unique<train::PlainObjective>(), 1),
        trainer_({spec, models::init(spec, 0), {dan_->network()}}, config_, objective_,
                 {torch::kCPU, torch::kFloat64}, group_) {}

  void steps(int64_t count, const data::Batch& batch, double lr = 1e-2) {
    for (int64_t i = 0; i < count; ++i) {
      trainer_.step(batch, {batch.images.size(0), done_++, lr, /*time=*/0.5});
    }
  }

  Learned learned() const { return dan_->learned(trainer_.parameters().weights(1)); }
  const Dan& dan() const { return *dan_; }
  train::Trainer& trainer() { return trainer_; }

 private:
  train::TrainConfig config_;
  train::Group group_;
  std::shared_ptr<const Dan> dan_;
  DanObjective objective_;
  train::Trainer trainer_;
  int64_t done_ = 0;
};

class DanTest : public SeededTest {};
class BudgetTest : public SeededTest {};

TEST_F(BudgetTest, MultipliersBringEveryMixtureToItsTarget) {
  for (const char* model : {"vit_mini_32", "swin_mini_32", "t2t_mini_32"}) {
    const Space space(catalog_spec(model), {});
    const Mixture mixture(space);
    for (const double share : {0.35, 0.45, 0.7}) {
      Target target;
      target.macs = static_cast<int64_t>(share * static_cast<double>(space.most().macs));
      const Budget budget(space, target, mixture);
      for (const double spread : {0.0, 1.0, 5.0}) {
        const auto eta = randn64({mixture.blocks(), mixture.candidates()}) * spread;
        auto multipliers = torch::zeros({1}, torch::kFloat64);
        for (int i = 0; i < 200; ++i) budget.adapt(eta, multipliers);
        const auto zero = torch::zeros_like(eta);
        const auto p = softened(budget.priced(eta, multipliers), zero,
                                torch::ones({}, torch::kFloat64), mixture.is_legal());
        EXPECT_NEAR(budget.spent(p).item<double>(), 1, 1e-6) << model << share << spread;
      }
    }
  }
}

TEST_F(BudgetTest, OfTwoTargetsOneBindsAndTheOtherIsNotExceeded) {
  const Space space(catalog_spec("swin_mini_32"), {});
  const Mixture mixture(space);
  for (const auto& [macs, params] : {std::pair(0.5, 0.5), {0.4, 0.8}, {0.8, 0.4}}) {
    Target target;
    target.macs = static_cast<int64_t>(macs * static_cast<double>(space.most().macs));
    target.params = static_cast<int64_t>(params * static_cast<double>(space.most().params));
    const Budget budget(space, target, mixture);
    const auto eta = randn64({mixture.blocks(), mixture.candidates()});
    auto multipliers = torch::zeros({2}, torch::kFloat64);
    for (int i = 0; i < 2000; ++i) budget.adapt(eta, multipliers);
    const auto p = softened(budget.priced(eta, multipliers), torch::zeros_like(eta),
                            torch::ones({}, torch::kFloat64), mixture.is_legal());
    EXPECT_NEAR(budget.spent(p).max().item<double>(), 1, 1e-3) << macs;
  }
}

TEST_F(BudgetTest, WithoutATargetNothingIsPriced) {
  const Space space(tiny(), {});
  const Mixture mixture(space);
  const Budget budget(space, {}, mixture);
  EXPECT_EQ(budget.targets(), 0);
  const auto eta = randn64({3, 4});
  EXPECT_EQ(gap(budget.priced(eta, torch::zeros({0}, torch::kFloat64)), eta), 0);
}

TEST_F(DanTest, TemperatureFallsGeometrically) {
  DanOptions options;
  EXPECT_NEAR(temperature(options, torch::zeros({})).item<double>(), 15, 1e-5);
  EXPECT_NEAR(temperature(options, torch::ones({})).item<double>(), 0.1667, 1e-5);
  // 0.956 per epoch in 100 epochs.
  EXPECT_NEAR(temperature(options, torch::tensor(0.1, torch::kFloat64)).item<double>(),
              15 * std::pow(0.956, 10), 1e-2);
}

TEST_F(DanTest, ThePenaltyIsTheMacsOfTheMixtureAndItsGradientMatchesDifferences) {
  DanOptions options;
  options.noise = NoiseKind::kGumbelFrozen;
  const auto value_and_gradient = [&](double gamma, const torch::Tensor& eta) {
    options.gamma = gamma;
    const auto dan = dan_of(tiny(), {}, options);
    const DanObjective objective(dan, at_once(), std::make_unique<train::PlainObjective>(), 1);
    torch::manual_seed(1);
    const Weights start = random_weights(tiny(), torch::kFloat64);
    const data::Batch batch = random_batch(tiny(), 2);
    Weights widest;
    for (const auto& [name, tensor] : start) widest.set(name, tensor);
    const auto leaf = eta.clone().requires_grad_(true);
    widest.set("mixing", leaf);
    widest.set("multipliers", torch::zeros({0}, torch::kFloat64));
    widest.set("noise", dan->network().own.at("noise").to(torch::kFloat64));
    const train::Loss loss = objective({{tiny(), start}, {tiny(), widest}}, batch,
                                       torch::full({}, 0.5, torch::kFloat64));
    loss.value.backward();
    return std::pair(loss.value.item<double>(), leaf.grad());
  };
  const auto eta = randn64({3, 4});
  constexpr double kGamma = 1e-3;
  const auto penalty = [&](const torch::Tensor& at) {
    return value_and_gradient(kGamma, at).first - value_and_gradient(0, at).first;
  };
  const auto gradient = value_and_gradient(kGamma, eta).second - value_and_gradient(0, eta).second;
  // By hand: shares at this temperature times what the candidates cost.
  options.gamma = kGamma;
  const auto dan = dan_of(tiny(), {}, options);
  const auto noise = dan->network().own.at("noise").to(torch::kFloat64);
  const auto tau = temperature(options, torch::full({}, 0.5, torch::kFloat64));
  const auto shares = ((eta + noise) / tau).softmax(1);
  double expected = 0;
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      expected += shares[i][j].item<double>() *
                  static_cast<double>(
                      dan->wanted().price(static_cast<size_t>(i), static_cast<size_t>(j)).macs);
    }
  }
  EXPECT_NEAR(penalty(eta), kGamma * expected, 1e-9 * kGamma * expected);
  for (int64_t k = 0; k < eta.numel(); ++k) {
    constexpr double kStep = 1e-4;
    const auto moved = [&](double by) {
      auto other = eta.clone();
      other.view(-1)[k] += by;
      return penalty(other);
    };
    const double difference = (moved(kStep) - moved(-kStep)) / (2 * kStep);
    EXPECT_NEAR(gradient.flatten()[k].item<double>(), difference,
                1e-5 * std::abs(expected * kGamma));
  }
}

TEST_F(DanTest, ALargePenaltyDrivesEveryBlockToItsLargestFactorAndNoneDoesNot) {
  const data::Batch batch = random_batch(tiny(), 8);
  DanOptions options;
  options.gamma = 1e-2;
  Searcher frugal(tiny(), {}, options);
  frugal.steps(60, batch);
  EXPECT_EQ(frugal.learned().fitted.alphas, (std::vector<int64_t>{8, 8, 8}));
  options.gamma = 0;
  Searcher lavish(tiny(), {}, options);
  lavish.steps(60, batch);
  const auto before = frugal.learned().probabilities;
  EXPECT_LT(before.select(1, 0).max().item<double>(), 0.1);
  // All begin at a quarter; more of a block answers better than less of it.
  EXPECT_GT(lavish.learned().probabilities.select(1, 0).mean().item<double>(), 0.3);
}

TEST_F(DanTest, ATargetIsMetInTheMixtureAndInWhatIsHandedOver) {
  const data::Batch batch = random_batch(tiny(), 8);
  const Space space(tiny(), {});
  Target target;
  target.macs = space.most().macs * 45 / 100;
  for (const NoiseKind noise :
       {NoiseKind::kGumbel, NoiseKind::kGumbelFrozen, NoiseKind::kGaussian}) {
    DanOptions options;
    options.noise = noise;
    Searcher searcher(tiny(), target, options);
    searcher.steps(40, batch);
    const Learned learned = searcher.learned();
    EXPECT_LE(target.share(learned.fitted.price), 1);
    EXPECT_GE(target.share(learned.fitted.price), 0.95);  // a step of 8 units is 2 % of this one
    EXPECT_NEAR(searcher.dan().budget().spent(learned.probabilities).item<double>(), 1, 0.02);
  }
}

TEST_F(DanTest, EtaLearnsWithoutDecayAndFasterThanTheNetwork) {
  Searcher searcher(tiny(), {}, {});
  const data::Batch batch = random_batch(tiny(), 4);
  searcher.steps(1, batch, /*lr=*/1e-3);
  const auto eta = searcher.trainer().judged_weights(1).at("mixing");
  // The first step of AdamW is as long as lr, here times 10, in every direction that counts.
  EXPECT_NEAR(eta.abs().max().item<double>(), 1e-2, 1e-4);
  bool is_found = false;
  for (const auto& [name, tensor] : searcher.trainer().state()) {
    is_found = is_found || name == "model.search.mixing";
  }
  EXPECT_TRUE(is_found);
  for (const train::ParameterGroup& group : searcher.trainer().parameters().groups()) {
    EXPECT_FALSE(group.lr_scale == 10 && group.has_decay);
  }
}

}  // namespace
}  // namespace adjoin::search
