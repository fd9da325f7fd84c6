#include "adjoin/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "adjoin/models/init.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/overrides.h"
#include "support/combinations.h"
#include "support/expect_error.h"
#include "support/seeded_test.h"

namespace adjoin::train {
namespace {

class TrainerTest : public SeededTest {
 protected:
  explicit TrainerTest(const std::string& model = "vit_mini_28") : spec(catalog_spec(model)) {
    batch.images = torch::randn({6, spec.in_chans, spec.img_size, spec.img_size}, torch::kFloat64);
    batch.labels = torch::arange(6);
    batch.targets = torch::one_hot(batch.labels, spec.num_classes).to(torch::kFloat64);
  }

  /// Gradients after one backward of the batch, with steps of length zero.
  torch::Tensor gradients(const TrainConfig& config, const ModelSpec& network) {
    Trainer trainer({network, models::init(network, 0)}, config, plain, compute, group);
    trainer.step(batch, {6, 0, 0});
    return trainer.parameters().gradients().clone();
  }

  ModelSpec spec;
  data::Batch batch;
  PlainObjective plain;
  Group group;
  Compute compute{torch::kCPU, torch::kFloat64};
};

TEST_F(TrainerTest, PartsOfABatchGiveTheGradientOfTheWhole) {
  TrainConfig config;
  const auto whole = gradients(config, spec);
  for (const int64_t parts : {2, 3, 6}) {
    config.grad_accum_steps = parts;
    EXPECT_LT((gradients(config, spec) - whole).abs().max().item<double>(), 1e-14) << parts;
  }
}

TEST_F(TrainerTest, RecomputedBlocksGiveTheSameGradientDropPathIncluded) {
  for (const char* name : {"vit_mini_28", "t2t_mini_28", "swin_mini_28"}) {
    const ModelSpec dropping = with_overrides(catalog_spec(name), {{"drop_path", "0.5"}});
    TrainConfig config;
    config.drop = 0.2;
    const auto kept = gradients(config, dropping);
    config.grad_checkpointing = true;
    const double size = kept.abs().max().item<double>();
    const auto off = [&] {
      return (gradients(config, dropping) - kept).abs().max().item<double>() / size;
    };
    EXPECT_LT(off(), 1e-12) << name;
    config.seed = 1;
    EXPECT_GT(off(), 1e-3) << name << ": nothing is drawn";
  }
}

TEST_F(TrainerTest, AStepThatIsNotFiniteIsNamedAndChangesNothing) {
  const TrainConfig config;
  Trainer trainer({spec, models::init(spec, 0)}, config, plain, compute, group);
  trainer.step(batch, {6, 0, 1e-3});
  const auto before = trainer.parameters().values().clone();
  batch.images[2][0][3][4] = NAN;
  expect_error(ErrorKind::kNumeric, {"step 2:", "NaN or infinite"}, [&] {
    trainer.step(batch, {6, 1, 1e-3});
  });
  EXPECT_TRUE(torch::equal(trainer.parameters().values(), before));
}

TEST_F(TrainerTest, ClippedGradientsHaveTheNormThatIsAllowed) {
  TrainConfig config;
  const auto norm = gradients(config, spec).norm().item<double>();
  config.optimizer.clip_grad = norm / 10;
  EXPECT_NEAR(gradients(config, spec).norm().item<double>(), norm / 10, 1e-5 * norm);
  config.optimizer.clip_grad = norm * 10;
  EXPECT_DOUBLE_EQ(gradients(config, spec).norm().item<double>(), norm);
}

TEST_F(TrainerTest, TheAverageFollowsTheWeights) {
  TrainConfig config;
  config.model_ema = true;
  config.model_ema_decay = 0.75;
  Trainer trainer({spec, models::init(spec, 0)}, config, plain, compute, group);
  auto expected = trainer.parameters().values().clone();
  for (int64_t i = 0; i < 3; ++i) {
    trainer.step(batch, {6, i, 1e-2});
    expected = expected * 0.75 + trainer.parameters().values() * 0.25;
  }
  const auto name = "blocks.1.mlp.fc1.weight";
  const auto average = trainer.parameters().weights_in(expected);
  EXPECT_LT((trainer.judged_weights().at(name) - average.at(name)).abs().max().item<double>(),
            1e-15);
  EXPECT_FALSE(
      torch::equal(trainer.judged_weights().at(name), trainer.parameters().weights().at(name)));
}

TEST_F(TrainerTest, LearnsABatchByHeartAndSaysSo) {
  TrainConfig config;
  Trainer trainer({spec, models::init(spec, 0)}, config, plain, compute, group);
  trainer.step(batch, {6, 0, 3e-3});
  const Metrics first = trainer.read();
  EXPECT_NEAR(first.loss, std::log(10), 0.3);
  EXPECT_EQ(first.images, 6);
  for (int64_t i = 1; i < 60; ++i) trainer.step(batch, {6, i, 3e-3});
  trainer.read();
  trainer.step(batch, {6, 60, 3e-3});
  const Metrics last = trainer.read();
  EXPECT_LT(last.loss, 0.1);
  EXPECT_EQ(last.accuracy, std::vector<double>{100});
}

/// Start values of another seed; what is not trained is as in seed 0.
Weights other_start(const ModelSpec& spec) {
  Weights weights = models::init(spec, 9);
  for (const TensorInfo& info : tensors(spec)) {
    if (!info.is_trained) weights.set(info.name, models::init_tensor(info, 0));
  }
  return weights;
}

TEST_F(TrainerTest, AnotherTrainerGoesOnFromItsState) {
  std::vector<ModelSpec> networks = combinations("vit_mini_28");
  networks.push_back(spec);
  for (const ModelSpec& network : networks) {
    TrainConfig config;
    config.model_ema = true;
    config.drop = 0.1;
    Trainer one({network, models::init(network, 0)}, config, plain, compute, group);
    for (int64_t i = 0; i < 2; ++i) one.step(batch, {6, i, 1e-2});
    Trainer two({network, other_start(network)}, config, plain, compute, group);
    const auto from = one.state();
    const auto to = two.state();
    ASSERT_EQ(from.size(), to.size());
    for (size_t i = 0; i < from.size(); ++i) {
      ASSERT_EQ(from[i].first, to[i].first);
      const torch::NoGradGuard no_grad;
      torch::Tensor(to[i].second).copy_(from[i].second);
    }
    two.set_steps_taken(one.steps_taken());
    for (int64_t i = 2; i < 4; ++i) {
      one.step(batch, {6, i, 1e-2});
      two.step(batch, {6, i, 1e-2});
    }
    for (size_t i = 0; i < from.size(); ++i) {
      EXPECT_TRUE(torch::equal(one.state()[i].second, two.state()[i].second))
          << network.name << " " << from[i].first;
    }
  }
}

}  // namespace
}  // namespace adjoin::train
