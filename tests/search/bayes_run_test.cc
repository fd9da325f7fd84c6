// A search by trials without the program around it: what a project that uses the library writes.
#include "adjoin/search/bayes_run.h"

#include <gtest/gtest.h>

#include "adjoin/cost/cost.h"
#include "adjoin/models/load.h"
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

/// Trains in this process.
train::RunResult trained(train::Job job, const std::string& folder, train::Group& group) {
  train::RunFolder held(folder, /*may_exist=*/true);
  train::RunOptions options;
  options.group = &group;
  options.folder = &held;
  return train::run(job, options);
}

TEST(BayesRunTest, SearchesAndTrainsInAProcessOfAnotherProgram) {
  const TempFolder folder;
  const train::Launch launch;
  const StopSignal stop;
  train::Group alone;
  std::vector<std::string> said;
  const auto run = [&](train::Job job, const std::string& where) {
    return trained(std::move(job), where, alone);
  };
  const auto note = [&](const std::vector<std::string>& notes) {
    said.insert(said.end(), notes.begin(), notes.end());
  };
  const train::Stages stages = {folder.path(), launch, stop, ProgressStyle::kSilent,
                                run,           run,    note};
  BayesRun search(small_search(), folder.path());
  search.take_folder(/*is_resumed=*/false);
  int64_t helpers = -1;
  search.search(stages, [&](const std::string& /*folder*/, int64_t count, int /*threads*/,
                            const std::function<void()>& work) {
    helpers = count;
    work();
    return std::vector<std::pair<int64_t, int>>();
  });
  const Json result = search.finish(stages);
  EXPECT_EQ(helpers, 0);
  EXPECT_EQ(result.at("trials"), 3);
  EXPECT_EQ(result.at("states").at("complete"), 3);
  EXPECT_FALSE(said.empty());
  const auto file = result.at("small").at("file").get<std::string>();
  EXPECT_LE(cost(models::load(file).header.spec).macs.total(),
            result.at("target").at("macs").get<int64_t>());
}

}  // namespace
}  // namespace adjoin::search
