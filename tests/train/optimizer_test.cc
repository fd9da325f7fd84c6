#include "adjoin/train/optimizer.h"

#include <gtest/gtest.h>

#include "adjoin/models/init.h"
#include "adjoin/spec/catalog.h"
#include "support/seeded_test.h"

namespace adjoin::train {
namespace {

/// Ours and LibTorch's own beside each other, on the same gradients.
class OptimizerTest : public SeededTest {
 protected:
  template <class Reference, class Options>
  double largest_difference(const OptimizerOptions& options, torch::ScalarType dtype,
                            Options with_decay, Options without) {
    const ModelSpec spec = catalog_spec("vit_mini_28");
    const Parameters parameters(spec, models::init(spec, 0), {}, torch::kCPU, dtype);
    Optimizer optimizer(options, parameters);
    std::vector<torch::Tensor> copies;
    std::vector<torch::Tensor> decayed;
    std::vector<torch::Tensor> rest;
    for (const TensorInfo& info : tensors(spec)) {
      copies.push_back(parameters.weights().at(info.name).detach().clone().requires_grad_(true));
      (info.has_decay ? decayed : rest).push_back(copies.back());
    }
    Reference reference({{decayed, std::make_unique<Options>(with_decay)},
                         {rest, std::make_unique<Options>(without)}},
                        with_decay);
    for (int step = 0; step < 10; ++step) {
      for (size_t i = 0; i < copies.size(); ++i) {
        const auto gradient = torch::randn_like(copies[i]);
        copies[i].mutable_grad() = gradient;
        parameters.leaves()[i].mutable_grad().copy_(gradient);
      }
      optimizer.step(options.lr);
      reference.step();
    }
    double worst = 0;
    for (size_t i = 0; i < copies.size(); ++i) {
      worst =
          std::max(worst, (copies[i] - parameters.leaves()[i]).abs().max().template item<double>());
    }
    return worst;
  }
};

TEST_F(OptimizerTest, AdamWTakesTheStepsOfPyTorch) {
  OptimizerOptions options;
  options.lr = 1e-2;
  options.weight_decay = 0.3;
  const auto reference =
      torch::optim::AdamWOptions(1e-2).betas({0.9, 0.999}).eps(1e-8).weight_decay(0.3);
  auto without = reference;
  without.weight_decay(0);
  EXPECT_LT((largest_difference<torch::optim::AdamW>(options, torch::kFloat64, reference, without)),
            1e-13);
  EXPECT_LT((largest_difference<torch::optim::AdamW>(options, torch::kFloat32, reference, without)),
            1e-6);
}

TEST_F(OptimizerTest, SgdTakesTheStepsOfPyTorchWithNesterovMomentum) {
  OptimizerOptions options;
  options.opt = OptimizerKind::kSgd;
  options.lr = 1e-2;
  options.weight_decay = 0.1;
  const auto reference =
      torch::optim::SGDOptions(1e-2).momentum(0.9).nesterov(true).weight_decay(0.1);
  auto without = reference;
  without.weight_decay(0);
  EXPECT_LT((largest_difference<torch::optim::SGD>(options, torch::kFloat64, reference, without)),
            1e-13);
}

}  // namespace
}  // namespace adjoin::train
