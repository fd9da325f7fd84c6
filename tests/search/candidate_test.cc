#include "adjoin/search/candidate.h"

#include <gtest/gtest.h>

#include "adjoin/models/init.h"
#include "adjoin/models/load.h"
#include "adjoin/models/slice.h"
#include "adjoin/spec/catalog.h"
#include "search/search_support.h"
#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace adjoin::search {
namespace {

Worth worth_of(const SearchConfig& config, Baseline baseline) {
  return {config, exploration(config), std::move(baseline)};
}

TEST(WorthTest, RisesWithAccuracyAndWithWhatIsSaved) {
  const SearchConfig config = config_of("vit_mini_28");
  const Worth worth = worth_of(config, {80, {}});
  const auto of = [&](int64_t macs, double top1) { return worth({macs, 1000}, {}, {1}, {top1}); };
  EXPECT_GT(of(1'000'000, 70), of(1'000'000, 60));
  EXPECT_GT(of(500'000, 70), of(1'000'000, 70));
  const Price large = exploration(config).price(keep_everything(catalog_spec("vit_mini_28")));
  EXPECT_EQ(of(large.macs, 80), 0);
  EXPECT_NEAR(of(large.macs / 2, 80), 0.75, 1e-6);  // C (2 - C) A with C = 1/2
}

TEST(WorthTest, CountsWhatIsSavedOnlyUpToTheTarget) {
  SearchConfig config = config_of("vit_mini_28");
  config.target_macs = "1M";
  const Worth worth = worth_of(config, {80, {}});
  EXPECT_EQ(worth({1'000'000, 9}, {}, {1}, {70}), worth({200'000, 9}, {}, {1}, {70}));
  EXPECT_GT(worth({1'000'000, 9}, {}, {1}, {70}), worth({1'500'000, 9}, {}, {1}, {70}));
  config.target_macs = "";
  config.target_params = "50k";
  EXPECT_EQ(worth_of(config, {80, {}}).cost(), RewardCost::kParams);
}

TEST(WorthTest, ByTrainingSpeedComparesLossesWithTheTeachers) {
  SearchConfig config = config_of("vit_mini_28");
  const auto of = [&](RewardBy by, const std::vector<double>& losses) {
    config.bayes.reward_by = by;
    return worth_of(config, {80, {2, 1, 0.5}})({1'000'000, 9}, {}, losses, {0});
  };
  for (const RewardBy by : {RewardBy::kTse, RewardBy::kTseE, RewardBy::kTseEma}) {
    EXPECT_GT(of(by, {2, 1.2, 0.6}), of(by, {2, 1.9, 1.8}));
    EXPECT_EQ(of(by, {2, 1, 0.5}), of(by, {1, 0.5, 0.1})) << "at most as good as the teacher";
  }
  EXPECT_EQ(of(RewardBy::kTseE, {9, 9, 1}), of(RewardBy::kTseE, {1, 1, 1}));
  EXPECT_LT(of(RewardBy::kTse, {9, 9, 1}), of(RewardBy::kTse, {1, 1, 1}));
}

TEST(WorthTest, ByLatencyLooksAtWhatWasMeasured) {
  SearchConfig config = config_of("vit_mini_28");
  config.bayes.reward_cost = RewardCost::kLatency;
  const Worth worth = worth_of(config, {80, {}});
  EXPECT_NEAR(worth({1, 1}, Latency{2, 1}, {1}, {80}), 0.75, 1e-12);
  const Exploration space = exploration(config);
  const Latency measured = measured_latency(space, space.whole());
  EXPECT_GT(measured.large, 0);
  EXPECT_GT(measured.small, 0);
}

class StudentTest : public testing::TestWithParam<const char*> {};

TEST_P(StudentTest, StartsAsASliceOfTheTeacherWithWhatIsNewByItsRule) {
  const TempFolder folder;
  const std::string file = folder / "teacher.safetensors";
  const ModelSpec large = catalog_spec(GetParam());
  io::ModelHeader header;
  header.spec = large;
  header.preprocessing = default_preprocessing(large);
  const Weights weights = models::init(large, 7);
  models::save(file, header, weights);
  SearchConfig config = with_teaching(config_of(GetParam()));
  config.bayes.skips = {"circulant"};
  config.bayes.norms = {"res-post"};
  config.compress.train.model_ema = true;
  const Exploration space = exploration(config);
  Rng rng(4);
  Choice choice = *space.drawn(rng);
  for (BlockChoice& block : choice.blocks) block.keep = true;
  const SkipPair pair = space.pairs().back();
  const size_t removed = pair.from == 0 ? 1 : 0;
  ASSERT_NE(static_cast<int64_t>(removed), pair.to);
  choice.blocks[removed].keep = false;
  choice.skips = {{pair.from, pair.to, SkipKind::kCirculant}};
  const train::Job job = prepare_student(config, file, choice, Length::kTrial, Images::kHeldIn, {});
  const Derived small = derive(large, choice, Geometry::kKept);
  EXPECT_EQ(job.header.spec, small.spec);
  EXPECT_EQ(job.config.epochs, 2) << "a tenth";
  EXPECT_EQ(job.config.schedule.warmup_epochs, 0.4) << "a fifth of them";
  EXPECT_FALSE(job.config.model_ema) << "it would be mostly the start";
  const Weights slices = models::copies(small, weights);
  int64_t fresh = 0;
  for (const Source& source : small.sources) {
    const torch::Tensor& value = job.start.at(source.tensor.name);
    EXPECT_EQ(value.sizes(), torch::IntArrayRef(source.tensor.shape()));
    fresh += source.slice ? 0 : 1;
    if (source.slice) {
      EXPECT_TRUE(torch::equal(value, slices.at(source.tensor.name))) << source.tensor.name;
    }
  }
  EXPECT_GE(fresh, 2 * static_cast<int64_t>(choice.blocks.size()));  // the skip, norm3 of each
  EXPECT_NE(job.teacher, "");
  // 60 images, a tenth of each class, rounded up, judges trials; only the last training sees it.
  EXPECT_EQ(job.data.train->size(), 50);
  EXPECT_EQ(job.data.val.size(), 10);
  EXPECT_EQ(job.data.val.name, prepare_teacher(config, {}).data.val.name);
  const train::Job last = prepare_student(config, file, choice, Length::kWhole, Images::kAll, {});
  EXPECT_EQ(last.data.train->size(), 60);
  EXPECT_EQ(last.config.epochs, 20);
  EXPECT_EQ(last.config.schedule.warmup_epochs, config.compress.train.schedule.warmup_epochs);
  EXPECT_TRUE(last.config.model_ema);
  config.bayes.jobs = 7;
  config.trials = 70;
  const train::Job same = prepare_student(config, file, choice, Length::kWhole, Images::kAll, {});
  EXPECT_EQ(same.header.provenance.recipe, last.header.provenance.recipe);
}

INSTANTIATE_TEST_SUITE_P(Models, StudentTest,
                         testing::Values("vit_mini_28", "t2t_mini_28", "swin_mini_28"),
                         [](const auto& p) { return std::string(p.param); });

TEST(BayesConfigTest, FieldsThatMeanNothingAreRefused) {
  SearchConfig config = config_of("vit_mini_28");
  config.candidates = {1, 2};
  expect_error(ErrorKind::kConfig, {"candidates", "bayes"}, [&] { exploration(config); });
  config = config_of("vit_mini_28");
  config.bayes.norms = {"pre", "pre"};
  expect_error(ErrorKind::kConfig, {"norms", "twice"}, [&] { exploration(config); });
  config.bayes.norms = {"above"};
  expect_error(ErrorKind::kConfig, {"norms", "above", "res-post"}, [&] { exploration(config); });
  config = config_of("vit_mini_28");
  config.target_bytes = "1k";
  expect_error(ErrorKind::kUsage, {"--target-params", "parameters"}, [&] { exploration(config); });
  config.target_bytes = "400k";
  EXPECT_EQ(*exploration(config).limits().params, 100'000);
}

}  // namespace
}  // namespace adjoin::search
