#include "adjoin/train/config.h"

#include <gtest/gtest.h>

#include <set>

#include "support/expect_error.h"

namespace adjoin::train {
namespace {

TrainConfig good() {
  TrainConfig config;
  config.model = "vit_mini_28";
  config.data = "fashion-mnist";
  return config;
}

TEST(TrainConfigTest, EveryFieldHasANameOfItsOwnAndComesBackFromJson) {
  TrainConfig config = good();
  config.augment.mixup = 0.8;
  config.optimizer.opt = OptimizerKind::kSgd;
  const Json json = to_json(config);
  TrainConfig back;
  from_json(json, back, "config");
  EXPECT_EQ(to_json(back), json);
  EXPECT_EQ(json.at("opt"), "sgd");
  EXPECT_EQ(json.at("mixup"), 0.8);
}

TEST(TrainConfigTest, SaysWhatIsMissingOrContradictsItself) {
  EXPECT_NO_THROW(check(good()));
  const auto refused = [](auto change, std::string_view part) {
    TrainConfig config = good();
    change(config);
    expect_error(ErrorKind::kConfig, {part}, [&] { check(config); });
  };
  refused([](TrainConfig& c) { c.model.clear(); }, "model: is missing");
  refused([](TrainConfig& c) { c.data.clear(); }, "data: is missing");
  refused([](TrainConfig& c) { c.teacher = "t.safetensors"; }, "distillation is none");
  refused([](TrainConfig& c) { c.distillation = DistillationKind::kHard; }, "--teacher");
  refused([](TrainConfig& c) { c.augment.scale = {1, 0.5}; }, "scale: must be two numbers");
  refused([](TrainConfig& c) { c.optimizer.opt_betas = {0.9}; }, "opt_betas");
  refused([](TrainConfig& c) { c.grad_accum_steps = 200; }, "more than the batch size 128");
  refused([](TrainConfig& c) { c.schedule.min_lr = 1; }, "above lr");
}

TEST(TrainConfigTest, TheRecipeHashSeesWhatIsComputedAndNotWhere) {
  const std::string hash = recipe_hash(to_json(good()));
  TrainConfig config = good();
  config.device = "cuda:3";
  config.workers = 7;
  config.data = "elsewhere";
  EXPECT_EQ(recipe_hash(to_json(config)), hash);
  config.optimizer.lr = 1e-3;
  EXPECT_NE(recipe_hash(to_json(config)), hash);
}

}  // namespace
}  // namespace adjoin::train
