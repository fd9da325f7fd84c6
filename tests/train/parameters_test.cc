#include "adjoin/train/parameters.h"

#include <gtest/gtest.h>

#include <map>

#include "adjoin/models/forward.h"
#include "adjoin/models/init.h"
#include "adjoin/spec/catalog.h"

namespace adjoin::train {
namespace {

TEST(ParametersTest, WeightsAndGradientsAreViewsOfTheTwoBuffers) {
  const ModelSpec spec = catalog_spec("t2t_mini_28");
  const Weights start = models::init(spec, 0);
  const Parameters parameters(spec, start, {}, torch::kCPU, torch::kFloat64);
  for (const TensorInfo& info : tensors(spec)) {
    EXPECT_TRUE(
        torch::equal(parameters.weights().at(info.name).to(torch::kFloat32), start.at(info.name)))
        << info.name;
    EXPECT_EQ(parameters.weights().at(info.name).requires_grad(), info.is_trained) << info.name;
  }
  const auto images = torch::rand({2, 1, 28, 28}, torch::kFloat64);
  models::forward(spec, parameters.weights(), images).logits().square().sum().backward();
  double sum = 0;
  for (const torch::Tensor& leaf : parameters.leaves()) {
    sum += leaf.grad().square().sum().item<double>();
  }
  EXPECT_GT(sum, 0);
  EXPECT_NEAR(parameters.gradients().square().sum().item<double>(), sum, 1e-9 * sum);
  parameters.values().zero_();
  EXPECT_EQ(parameters.leaves()[3].abs().max().item<double>(), 0);
}

TEST(ParametersTest, GroupsCoverTheBufferAndTellDecayApart) {
  const ModelSpec spec = catalog_spec("swin_mini_28");
  const Parameters parameters(spec, models::init(spec, 0), {}, torch::kCPU, torch::kFloat32);
  ASSERT_EQ(parameters.groups().size(), 2U);
  EXPECT_EQ(parameters.groups()[0].begin, 0);
  EXPECT_EQ(parameters.groups()[0].end, parameters.groups()[1].begin);
  EXPECT_EQ(parameters.groups()[1].end, parameters.values().numel());
  EXPECT_FALSE(parameters.groups()[0].has_decay);
  for (const TensorInfo& info : tensors(spec)) {
    const auto offset = parameters.weights().at(info.name).data_ptr<float>() -
                        parameters.values().data_ptr<float>();
    EXPECT_EQ(offset >= parameters.groups()[1].begin, info.has_decay) << info.name;
    EXPECT_EQ(offset % 16, 0) << info.name;
  }
}

TEST(ParametersTest, LayersAreCountedFromTheHead) {
  const auto below = [](const std::string& model) {
    const auto infos = tensors(catalog_spec(model));
    const auto layers = layers_below_head(infos);
    std::map<std::string, int64_t> result;
    for (size_t i = 0; i < infos.size(); ++i) result[infos[i].name] = layers[i];
    return result;
  };
  auto vit = below("deit_tiny_patch16_224");
  EXPECT_EQ(vit.at("head.weight"), 0);
  EXPECT_EQ(vit.at("norm.bias"), 0);
  EXPECT_EQ(vit.at("blocks.11.mlp.fc2.weight"), 1);
  EXPECT_EQ(vit.at("blocks.0.norm1.weight"), 12);
  EXPECT_EQ(vit.at("patch_embed.proj.weight"), 13);
  EXPECT_EQ(vit.at("pos_embed"), 13);
  auto swin = below("swin_tiny_patch4_window7_224");
  EXPECT_EQ(swin.at("layers.1.downsample.reduction.weight"),
            swin.at("layers.1.blocks.0.norm1.weight"));
  EXPECT_EQ(swin.at("patch_embed.norm.weight"), 13);
}

TEST(ParametersTest, LayerDecayGivesLowerLayersLowerRates) {
  const ModelSpec spec = catalog_spec("vit_mini_28");
  const Parameters parameters(spec, models::init(spec, 0), {}, torch::kCPU, torch::kFloat32, 0.5);
  double least = 1;
  double most = 0;
  for (const ParameterGroup& group : parameters.groups()) {
    least = std::min(least, group.lr_scale);
    most = std::max(most, group.lr_scale);
  }
  EXPECT_EQ(most, 1);
  EXPECT_EQ(least, 1.0 / 32);  // stem below four blocks
}

}  // namespace
}  // namespace adjoin::train
