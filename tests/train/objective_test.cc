#include "adjoin/train/objective.h"

#include <gtest/gtest.h>

#include "adjoin/models/forward.h"
#include "adjoin/models/init.h"
#include "adjoin/spec/catalog.h"
#include "support/expect_error.h"
#include "support/seeded_test.h"

namespace adjoin::train {
namespace {

class ObjectiveTest : public SeededTest {
 protected:
  torch::Tensor student = torch::randn({3, 5}, torch::kFloat64);
  torch::Tensor teacher = torch::randn({3, 5}, torch::kFloat64);
};

TEST_F(ObjectiveTest, SoftCrossEntropyOfHardTargetsIsThePlainOne) {
  const auto labels = torch::tensor({4, 0, 2});
  const auto targets = torch::one_hot(labels, 5).to(torch::kFloat64);
  EXPECT_NEAR(soft_cross_entropy(student, targets).item<double>(),
              torch::nn::functional::cross_entropy(student, labels).item<double>(), 1e-14);
}

TEST_F(ObjectiveTest, SoftDistillationIsTheDivergencePerLogitAtTheTemperature) {
  const double tau = 3;
  double expected = 0;
  for (int64_t i = 0; i < 3; ++i) {
    const auto p = torch::softmax(teacher[i] / tau, 0);
    const auto q = torch::softmax(student[i] / tau, 0);
    expected += (p * (p / q).log()).sum().item<double>();
  }
  EXPECT_NEAR(distillation_loss(DistillationKind::kSoft, tau, student, teacher).item<double>(),
              expected * tau * tau / 15, 1e-14);
  EXPECT_NEAR(distillation_loss(DistillationKind::kSoft, tau, teacher, teacher).item<double>(), 0,
              1e-15);
}

TEST_F(ObjectiveTest, HardDistillationFollowsTheTeachersChoiceAndMseItsLogits) {
  EXPECT_DOUBLE_EQ(distillation_loss(DistillationKind::kHard, 1, student, teacher).item<double>(),
                   torch::nn::functional::cross_entropy(student, teacher.argmax(1)).item<double>());
  EXPECT_NEAR(distillation_loss(DistillationKind::kMse, 1, student, teacher).item<double>(),
              (student - teacher).square().mean().item<double>(), 1e-15);
}

TEST_F(ObjectiveTest, ATeacherSeesImagesInItsOwnNormalisation) {
  const ModelSpec spec = catalog_spec("vit_mini_28");
  io::ModelHeader network{spec, {}, default_preprocessing(spec), {}};
  network.preprocessing.mean = {0.3};
  network.preprocessing.std = {0.5};
  io::ModelHeader header = network;
  header.preprocessing.mean = {0.1};
  header.preprocessing.std = {0.25};
  const Weights taught = models::init(spec, 1).to(torch::kCPU, torch::kFloat64);
  const Weights weights = models::init(spec, 2).to(torch::kCPU, torch::kFloat64);
  const DistillationObjective objective({DistillationKind::kMse, 1, 1}, header, taught, network);
  const auto pixels = torch::rand({2, 1, 28, 28}, torch::kFloat64);
  data::Batch batch;
  batch.images = (pixels - 0.3) / 0.5;
  batch.targets = torch::full({2, 10}, 0.1, torch::kFloat64);
  const auto loss = objective({{spec, weights, {}}}, batch, {}).value.item<double>();
  const auto expected =
      torch::mse_loss(models::forward(spec, weights, batch.images).logits(),
                      models::forward(spec, taught, (pixels - 0.1) / 0.25).logits());
  EXPECT_NEAR(loss, expected.item<double>(), 1e-13);
}

TEST_F(ObjectiveTest, ADistilledNetworkListensWithItsSecondHead) {
  ModelSpec spec = catalog_spec("vit_mini_28");
  std::get<VitSpec>(spec.family).distilled = true;
  const io::ModelHeader header{spec, {}, default_preprocessing(spec), {}};
  const Weights weights = models::init(spec, 2).to(torch::kCPU, torch::kFloat64);
  const Weights taught = models::init(spec, 5).to(torch::kCPU, torch::kFloat64);
  const DistillationObjective objective({DistillationKind::kHard, 0.3, 1}, header, taught, header);
  data::Batch batch;
  batch.images = torch::rand({2, 1, 28, 28}, torch::kFloat64);
  batch.targets = torch::one_hot(torch::tensor({1, 2}), 10).to(torch::kFloat64);
  const auto out = models::forward(spec, weights, batch.images);
  const auto says = models::forward(spec, taught, batch.images).logits().argmax(1);
  const auto expected = soft_cross_entropy(out.cls, batch.targets) * 0.7 +
                        torch::nn::functional::cross_entropy(out.dist, says) * 0.3;
  EXPECT_NEAR(objective({{spec, weights, {}}}, batch, {}).value.item<double>(),
              expected.item<double>(), 1e-13);
}

TEST_F(ObjectiveTest, ATeacherOfOtherImagesOrClassesIsRefused) {
  const ModelSpec spec = catalog_spec("vit_mini_28");
  const io::ModelHeader network{spec, {}, default_preprocessing(spec), {}};
  const ModelSpec other = catalog_spec("vit_mini_32");
  const io::ModelHeader header{other, {}, default_preprocessing(other), {}};
  expect_error(ErrorKind::kConfig, {"img_size 32, the network 28"},
               [&] { DistillationObjective({}, header, models::init(other, 0), network); });
}

}  // namespace
}  // namespace adjoin::train
