// A search by trials without the program around it: what a project that uses the library writes.
#include "adjoin/search/bayes_run.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "adjoin/compress/importance.h"
#include "adjoin/core/place.h"
#include "adjoin/cost/cost.h"
#include "adjoin/models/init.h"
#include "adjoin/models/load.h"
#include "support/expect_error.h"
#include "support/gap.h"
#include "support/temp_folder.h"

namespace adjoin::search {
namespace {

SearchConfig small_search() {
  SearchConfig config;
  config.method = Method::kBayes;
  config.target_macs = "0.5x";
  config.trials = 3;
  config.search_epochs = 1;
  config.compress.train.model = "vit_mini_28";
  config.compress.train.data = "synthetic:1x28x28x10x120";
  config.compress.train.device = "cpu";
  config.compress.train.epochs = 1;
  config.compress.train.batch_size = 20;
  return config;
}

/// A program that trains in its own process, and keeps what it was asked to train.
class BayesRunTest : public testing::Test {
 protected:
  struct Asked {
    std::string folder;  // within that of the search
    int64_t images;
    ModelSpec spec;
    Weights start;
  };

  Json search(const SearchConfig& config, bool is_resumed = false) {
    const train::Launch launch;
    const StopSignal stop;
    train::Group alone;
    const auto run = [&](train::Job job, const std::string& where) {
      const std::string name = where.substr(folder_.path().size());
      asked_.push_back({name, job.data.train->size(), job.header.spec, {}});
      for (const auto& [tensor, value] : job.start) asked_.back().start.set(tensor, value.clone());
      before_(name);
      train::RunFolder held(where, /*may_exist=*/true);
      train::RunOptions options;
      options.group = &alone;
      options.folder = &held;
      return train::run(job, options);
    };
    const auto note = [&](const std::vector<std::string>& notes) {
      said_.insert(said_.end(), notes.begin(), notes.end());
    };
    const train::Stages stages = {
        folder_.path(), launch, stop, ProgressStyle::kSilent, run, run, note};
    BayesRun search(config, folder_.path());
    search.take_folder(is_resumed);
    search.search(stages, [&](const std::string& /*folder*/, int64_t count, int /*threads*/,
                              const std::function<void()>& work) {
      helpers_ = count;
      work();
      return std::vector<std::pair<int64_t, int>>();
    });
    const Json result = search.finish(stages);
    expect_error(ErrorKind::kIo, {"another run is writing"},
                 [&] { train::RunFolder(folder_.path(), /*may_exist=*/true); });
    return result;
  }

  std::string study_file() const { return folder_ / "study.db"; }
  Json about() const { return store::Study::read(study_file()).about(); }

  int64_t times(const std::string& folder) const {
    return std::count_if(asked_.begin(), asked_.end(),
                         [&](const Asked& one) { return one.folder == folder; });
  }
  bool was_said(std::string_view part) const {
    return std::any_of(said_.begin(), said_.end(),
                       [&](const std::string& said) { return contains(said, part); });
  }

  const TempFolder folder_;
  std::function<void(const std::string& name)> before_ = [](const std::string& /*name*/) {};
  std::vector<Asked> asked_;
  std::vector<std::string> said_;
  int64_t helpers_ = -1;
};

TEST_F(BayesRunTest, SearchesAndTrainsInAProcessOfAnotherProgram) {
  const Json result = search(small_search());
  EXPECT_EQ(helpers_, 0);
  EXPECT_EQ(result.at("trials"), 3);
  EXPECT_EQ(result.at("states").at("complete"), 3);
  EXPECT_FALSE(said_.empty());
  const auto file = result.at("small").at("file").get<std::string>();
  EXPECT_LE(cost(models::load(file).header.spec).macs.total(),
            result.at("target").at("macs").get<int64_t>());
}

TEST_F(BayesRunTest, OneThatDivergesFailsAndTheOthersGoOn) {
  before_ = [](const std::string& name) {
    if (name == "/search/trial-001") throw Error(ErrorKind::kNumeric, "the loss is NaN");
  };
  SearchConfig config = small_search();
  config.retrain = false;
  EXPECT_EQ(search(config).at("states"),
            Json({{"complete", 2}, {"stopped", 0}, {"failed", 1}, {"open", 0}}));
  EXPECT_TRUE(was_said("trial 1: failed: the loss is NaN"));
  config.trials = 4;
  EXPECT_EQ(search(config, /*is_resumed=*/true).at("states").at("complete"), 3);
  EXPECT_EQ(times("/search/trial-001"), 1) << "it is not tried again";
}

TEST_F(BayesRunTest, OneThatAlwaysEndsItsProcessIsGivenUp) {
  before_ = [](const std::string& name) {
    if (name == "/search/trial-000") throw std::runtime_error("out of luck");
  };
  SearchConfig config = small_search();
  config.retrain = false;
  for (int i = 0; i < 10; ++i) EXPECT_THROW(search(config, /*is_resumed=*/i > 0), std::exception);
  const Json result = search(config, /*is_resumed=*/true);
  EXPECT_EQ(result.at("states").at("failed"), 1);
  EXPECT_EQ(result.at("states").at("complete"), 2);
  EXPECT_EQ(times("/search/trial-000"), 10);
  EXPECT_TRUE(was_said("trial 0: failed: its process ended 10 times without another checkpoint"));
}

TEST_F(BayesRunTest, OneThatComesFurtherEveryTimeIsNot) {
  SearchConfig config = small_search();
  config.retrain = false;
  const std::string checkpoint = folder_ / "search/trial-000/last.ckpt";
  int64_t written = 0;
  before_ = [&](const std::string& name) {
    if (name != "/search/trial-000" || written == 12) return;
    make_folders(folder_ / "search/trial-000");
    std::ofstream(checkpoint) << ++written;
    throw std::runtime_error("out of luck");
  };
  for (int i = 0; i < 12; ++i) EXPECT_THROW(search(config, /*is_resumed=*/i > 0), std::exception);
  EXPECT_EQ(search(config, /*is_resumed=*/true).at("states").at("complete"), 3);
}

TEST_F(BayesRunTest, OneThatASignalStopsGoesOnHoweverOften) {
  SearchConfig config = small_search();
  config.retrain = false;
  int64_t stops = 0;
  before_ = [&](const std::string& name) {
    if (name == "/search/trial-000" && stops++ < 12) throw Stopped{SIGTERM};
  };
  for (int i = 0; i < 12; ++i) EXPECT_THROW(search(config, /*is_resumed=*/i > 0), Stopped);
  EXPECT_EQ(search(config, /*is_resumed=*/true).at("states").at("complete"), 3);
}

TEST_F(BayesRunTest, WhatAProcessThatDiedLeftBehindTakesNoTime) {
  SearchConfig config = small_search();
  config.retrain = false;
  before_ = [](const std::string& name) {
    if (name == "/search/trial-000") throw std::runtime_error("out of luck");
  };
  EXPECT_THROW(search(config), std::exception);
  before_ = [](const std::string& /*name*/) {};
  store::Study study = store::Study::open(study_file(), "vit_mini_28", about());
  study.set_facts(0, {{"seconds", 3600}});
  config.budget_minutes = 10;
  EXPECT_EQ(search(config, /*is_resumed=*/true).at("states").at("complete"), 3);
  // What is over does.
  study.set_facts(0, {{"seconds", 3600}});
  config.trials = 5;
  EXPECT_EQ(search(config, /*is_resumed=*/true).at("trials"), 3);
}

TEST_F(BayesRunTest, WhatAnotherProcessIsAtTakesTime) {
  SearchConfig config = small_search();
  config.retrain = false;
  config.trials = 2;
  before_ = [](const std::string& name) {
    if (name == "/search/trial-001") throw std::runtime_error("out of luck");
  };
  EXPECT_THROW(search(config), std::exception);
  store::Study study = store::Study::open(study_file(), "vit_mini_28", about());
  const auto claim = study.claim();
  ASSERT_EQ(claim->trial().number, 1);
  study.set_facts(1, {{"seconds", 3600}});
  before_ = [](const std::string& name) { throw Error(ErrorKind::kInternal, name + " begins"); };
  config.budget_minutes = 10;
  config.trials = 4;
  const Json result = search(config, /*is_resumed=*/true);
  EXPECT_EQ(result.at("trials"), 2) << "no other one begins";
  EXPECT_EQ(result.at("states").at("open"), 1) << "and it is not waited for";
}

TEST_F(BayesRunTest, TimeIsThatOfAllTrialsWhereWhatWasTrainedStays) {
  SearchConfig config = small_search();
  const Json first = search(config);
  std::ofstream(folder_ / "result.json") << first;  // as the command does
  before_ = [](const std::string& name) {
    if (name == "/search/trial-003") throw Error(ErrorKind::kNumeric, "the loss is NaN");
  };
  config.retrain = false;
  config.trials = 4;
  const Json second = search(config, /*is_resumed=*/true);
  EXPECT_EQ(second.at("best"), first.at("best"));
  EXPECT_EQ(second.at("small"), first.at("small"));
  const auto others = [](const Json& result) {
    return result.at("seconds").get<double>() - result.at("search_seconds").get<double>();
  };
  EXPECT_GT(second.at("search_seconds"), first.at("search_seconds"));
  EXPECT_NEAR(others(second), others(first), 1e-9);
  // A file that is not what a search writes is no result.
  for (const char* text : {"[]", R"({"best": 0, "small": 3})"}) {
    std::ofstream(folder_ / "result.json") << text;
    EXPECT_FALSE(search(config, /*is_resumed=*/true).at("small").contains("file"));
  }
}

TEST_F(BayesRunTest, AnotherOrderThanTrialsHadIsRefused) {
  SearchConfig config = small_search();
  config.retrain = false;
  config.compress.order = compress::Order::kMagnitude;
  search(config);
  const std::string file = folder_ / "teacher/ordered.safetensors";
  const models::Model ordered = models::load(file);
  models::save(file, ordered.header, models::init(ordered.header.spec, 7));
  config.trials = 4;
  EXPECT_EQ(search(config, /*is_resumed=*/true).at("trials"), 4) << "it is measured to be the same";
  EXPECT_EQ(models::content_hash(models::load(file).weights),
            models::content_hash(ordered.weights));
  store::Study::open(study_file(), "vit_mini_28", about()).set_fact("ordered", "of another one");
  expect_error(ErrorKind::kData, {file, "is not the one that trials were slices of"},
               [&] { search(config, /*is_resumed=*/true); });
}

TEST_F(BayesRunTest, WhatHasNoEndSaysWhichTrainingItWas) {
  SearchConfig config = small_search();
  config.bayes.reward_by = RewardBy::kTse;
  for (const auto& [part, words] :
       {std::pair("/teacher", "while the teacher was trained: "),
        std::pair("/search/baseline", "while the teacher was trained as trials are: ")}) {
    before_ = [&, wanted = std::string(part)](const std::string& name) {
      if (name == wanted) throw Error(ErrorKind::kNumeric, "the loss is NaN");
    };
    expect_error(ErrorKind::kNumeric, {words, "the loss is NaN"},
                 [&] { search(config, /*is_resumed=*/true); });
  }
}

TEST_F(BayesRunTest, FinalistsAreJudgedByImagesThatNoneOfThemLearnsFrom) {
  SearchConfig config = small_search();
  config.bayes.finalists = 3;
  const Json result = search(config);
  const Json& finalists = result.at("finalists");
  ASSERT_EQ(finalists.size(), 3U);
  double most = -1;
  Json winner;
  for (const Json& one : finalists) {
    const auto top1 = one.at("top1_set_aside").get<double>();
    if (top1 > most) winner = one.at("trial");
    most = std::max(most, top1);
  }
  EXPECT_EQ(result.at("best"), winner);
  for (const Asked& one : asked_) EXPECT_EQ(one.images, 110) << one.folder << ", of 120";
  config.bayes.finalists = 1;
  search(config, /*is_resumed=*/true);
  EXPECT_EQ(asked_.back().folder, "");
  EXPECT_EQ(asked_.back().images, 120) << "what is trained alone sees all";
}

TEST_F(BayesRunTest, AllStudentsAreSlicesOfOneTeacherThatWasPutInOrderOnce) {
  SearchConfig config = small_search();
  config.compress.order = compress::Order::kTaylor;
  config.compress.order_images = 40;
  config.bayes.skips = {"none"};
  search(config);
  const models::Model teacher = models::load(folder_ / "teacher/model.safetensors");
  const models::Model ordered = models::load(folder_ / "teacher/ordered.safetensors");
  const std::string name = "mlp.fc1.weight";
  const auto row_sums = [&](const Weights& weights, int64_t block) {
    return std::get<0>(weights.at(fmt::format("blocks.{}.{}", block, name)).sum(1).sort());
  };
  int64_t moved = 0;
  for (int64_t block = 0; block < 4; ++block) {
    EXPECT_LT(gap(row_sums(teacher.weights, block), row_sums(ordered.weights, block)), 1e-6);
    const std::string tensor = fmt::format("blocks.{}.{}", block, name);
    moved += torch::equal(teacher.weights.at(tensor), ordered.weights.at(tensor)) ? 0 : 1;
  }
  EXPECT_GT(moved, 0);
  int64_t students = 0;
  for (const Asked& one : asked_) {
    if (one.folder == "/teacher") continue;
    ++students;
    const auto& blocks = std::get<VitSpec>(one.spec.family).blocks;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const auto whole = ordered.weights.at(fmt::format("blocks.{}.{}", blocks[i].origin, name));
      const auto part = one.start.at(fmt::format("blocks.{}.{}", i, name));
      EXPECT_TRUE(torch::equal(part, whole.narrow(0, 0, part.size(0)))) << one.folder;
    }
  }
  EXPECT_EQ(students, 4) << "three trials and the last training, which sees other images";
}

}  // namespace
}  // namespace adjoin::search
