// The recorded step: the same numbers as the step that is launched kernel by kernel.
#include <cmath>

#include "adjoin/compress/job.h"
#include "adjoin/models/init.h"
#include "adjoin/search/dan.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/overrides.h"
#include "adjoin/tensor/device.h"
#include "adjoin/train/trainer.h"
#include "support/expect_error.h"
#include "support/seeded_test.h"

namespace adjoin::train {
namespace {

class RecordedStepTest : public SeededTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU is visible to this LibTorch";
    prepare_torch(1);
    spec = with_overrides(catalog_spec(GetParam()), {{"drop_path", "0.3"}});
    config.optimizer.clip_grad = 1;
    config.model_ema = true;
    config.model_ema_decay = 0.9;
  }

  data::Batch batch(int64_t size) const {
    data::Batch made;
    made.images = torch::randn({size, spec.in_chans, spec.img_size, spec.img_size}).cuda();
    made.labels = torch::arange(size).remainder(10).cuda();
    made.targets = torch::one_hot(made.labels, 10).to(torch::kFloat32);
    return made;
  }

  /// Ten steps, one of them with a smaller batch, at rates that differ.
  std::pair<torch::Tensor, Metrics> trained(bool is_recorded) {
    torch::manual_seed(7);
    config.cuda_graph = is_recorded;
    Trainer trainer({spec, models::init(spec, 0)}, config, plain, compute, group);
    for (int64_t i = 0; i < 10; ++i) {
      const int64_t size = i == 7 ? 5 : 8;
      trainer.step(batch(size), {size, i, 1e-3 / static_cast<double>(i + 1)});
    }
    const Metrics metrics = trainer.read();
    return {trainer.parameters().values().clone(), metrics};
  }

  ModelSpec spec;
  TrainConfig config;
  PlainObjective plain;
  Group group;
  Compute compute{torch::Device(torch::kCUDA, 0), torch::kFloat32};
};

TEST_P(RecordedStepTest, GivesTheWeightsOfTheLaunchedStep) {
  const auto [launched, told] = trained(false);
  const auto [recorded, also_told] = trained(true);
  EXPECT_LT((launched - recorded).abs().max().item<double>(), 2e-5);
  EXPECT_NEAR(told.loss, also_told.loss, 1e-4);
  EXPECT_NEAR(told.grad_norm, also_told.grad_norm, 1e-3 * told.grad_norm);
  EXPECT_EQ(told.images, also_told.images);
}

TEST_P(RecordedStepTest, NamesTheStepThatIsNotFinite) {
  Trainer trainer({spec, models::init(spec, 0)}, config, plain, compute, group);
  for (int64_t i = 0; i < 8; ++i) {
    data::Batch next = batch(8);
    if (i == 6) next.images[2][0][3][4] = NAN;
    trainer.step(next, {8, i, 1e-3});
  }
  expect_error(ErrorKind::kNumeric, {"step 7:", "NaN or infinite"}, [&] { trainer.read(); });
}

TEST_P(RecordedStepTest, FollowsTheWeightOfTheSmallNetworksThatRises) {
  compress::CompressConfig options;
  options.alpha = {2, 4};
  const auto run = [&](bool is_recorded) {
    torch::manual_seed(7);
    config.cuda_graph = is_recorded;
    Networks networks{spec, models::init(spec, 0)};
    networks.inner = compress::inner_networks(options, spec, networks.start);
    const compress::AdjoinedObjective adjoined(options.adjoined, std::make_unique<PlainObjective>(),
                                               {"small-2", "small-4"}, /*epochs=*/10);
    Trainer trainer(networks, config, adjoined, compute, group);
    for (int64_t i = 0; i < 10; ++i) {
      trainer.step(batch(8), {8, i, 1e-3, static_cast<double>(i) / 10});
    }
    const Metrics metrics = trainer.read();
    return std::pair(trainer.parameters().values().clone(), metrics);
  };
  const auto [launched, told] = run(false);
  const auto [recorded, also_told] = run(true);
  EXPECT_LT((launched - recorded).abs().max().item<double>(), 5e-5);
  ASSERT_EQ(told.terms.size(), also_told.terms.size());
  for (size_t i = 0; i < told.terms.size(); ++i) {
    EXPECT_NEAR(told.terms[i], also_told.terms[i], 1e-4 + 1e-3 * std::abs(told.terms[i]));
  }
}

TEST_P(RecordedStepTest, SearchesForATargetAsTheLaunchedStepDoes) {
  const search::Space space(spec, {});
  search::Target target;
  target.macs = space.most().macs / 2;
  const auto run = [&](bool is_recorded) {
    torch::manual_seed(7);
    config.cuda_graph = is_recorded;
    search::DanOptions options;
    options.noise = search::NoiseKind::kGumbelFrozen;  // fresh noise differs between the two ways
    const auto dan =
        std::make_shared<search::Dan>(space, space, target, options, 0, compute.device);
    compress::AdjoinedOptions at_once;
    at_once.lambda = compress::LambdaKind::kConstant;
    const search::DanObjective objective(dan, at_once, std::make_unique<PlainObjective>(),
                                         /*epochs=*/10);
    Trainer trainer({spec, models::init(spec, 0), {dan->network()}}, config, objective, compute,
                    group);
    for (int64_t i = 0; i < 10; ++i) {
      trainer.step(batch(8), {8, i, 1e-3, static_cast<double>(i) / 10});
    }
    const auto learned = dan->learned(trainer.parameters().weights(1));
    EXPECT_NEAR(dan->expected_macs(learned.probabilities) / static_cast<double>(*target.macs), 1,
                0.02);
    return std::pair(trainer.parameters().values().clone(), trainer.read());
  };
  const auto [launched, told] = run(false);
  const auto [recorded, also_told] = run(true);
  EXPECT_LT((launched - recorded).abs().max().item<double>(), 5e-4);
  for (size_t i = 0; i < told.terms.size(); ++i) {
    EXPECT_NEAR(told.terms[i], also_told.terms[i], 1e-4 + 1e-3 * std::abs(told.terms[i]));
  }
}

INSTANTIATE_TEST_SUITE_P(Minis, RecordedStepTest,
                         testing::Values("vit_mini_32", "t2t_mini_32", "swin_mini_32"),
                         [](const auto& p) { return std::string(p.param); });

}  // namespace
}  // namespace adjoin::train
