#include "adjoin/search/trial_book.h"

#include <gtest/gtest.h>

#include <cmath>

#include "adjoin/search/candidate.h"
#include "adjoin/spec/architecture.h"
#include "search/search_support.h"
#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace adjoin::search {
namespace {

TEST(TrialBookTest, TellsWhatIsKnownFromWhatIsNot) {
  const Exploration space = exploration(config_of("vit_mini_28"));
  Rng rng(1);
  std::vector<store::StoredTrial> trials;
  const auto add = [&](store::TrialState state, std::optional<double> reward) {
    store::StoredTrial trial;
    trial.number = std::ssize(trials);
    trial.state = state;
    trial.reward = reward;
    trial.facts = proposal_of(space, *space.drawn(rng), Proposer::kRandom, 0).facts;
    trials.push_back(std::move(trial));
  };
  add(store::TrialState::kComplete, 0.4);
  add(store::TrialState::kPruned, 0.9);
  add(store::TrialState::kFailed, {});
  add(store::TrialState::kRunning, {});
  add(store::TrialState::kComplete, 0.6);
  const History history = history_of(space, trials);
  ASSERT_EQ(history.tried.size(), 4U);
  EXPECT_EQ(history.tried[1].reward, 0.9);
  EXPECT_EQ(history.tried[2].reward, 0.4) << "one that failed is as bad as the worst";
  EXPECT_EQ(history.tried[3].choice, choice_of(space, trials[4]));
  EXPECT_EQ(history.pending.size(), 1U);
  EXPECT_EQ(history_of(space, {trials[2]}).pending.size(), 1U) << "nothing to compare it with";
  const auto best = ranking(trials);
  ASSERT_EQ(best.size(), 2U) << "those that were stopped early are not compared at the end";
  EXPECT_EQ(best[0].number, 4);
  trials[0].curve = {{0, 0.1}, {1, 0.2}};
  trials[1].curve = {{0, 0.3}};
  EXPECT_EQ(rewards_after(1, 1, trials), std::vector<double>{0.1});
  EXPECT_EQ(rewards_after(1, 9, trials), (std::vector<double>{0.1, 0.3}));
  EXPECT_EQ(rewards_after(2, 9, trials), std::vector<double>{0.2});
  trials[2].curve = {{0, 0.9}};
  EXPECT_EQ(rewards_after(1, 9, trials), (std::vector<double>{0.1, 0.3})) << "it failed later";
  EXPECT_EQ(sum_of(trials, "seconds"), 0);
  trials[1].facts["seconds"] = 2.5;
  trials[2].facts["losses"] = {1, 0.5};
  EXPECT_EQ(sum_of(trials, "seconds"), 2.5);
  EXPECT_EQ(numbers_of(trials[2].facts, "losses", "x"), (std::vector<double>{1, 0.5}));
  trials[1].facts["seconds"] = "x";
  trials[2].facts["losses"] = {1, Json::array()};
  expect_error(ErrorKind::kData, {"trial 1", "seconds", "not a number"},
               [&] { sum_of(trials, "seconds"); });
  expect_error(ErrorKind::kData, {"trial 2", "losses", "not of numbers"},
               [&] { numbers_of(trials[2].facts, "losses", name_of(trials[2])); });
  trials[0].facts.erase("architecture");
  expect_error(ErrorKind::kData, {"trial 0", "architecture"}, [&] { history_of(space, trials); });
}

TEST(TrialBookTest, FactsThatNoSearchWritesAreRefusedWithTheFile) {
  const Exploration space = exploration(config_of("vit_mini_28"));
  const auto refused = [&](const auto& damage, const std::vector<std::string_view>& parts) {
    const TempFolder folder;
    const std::string file = folder / "study.db";
    store::Study study = store::Study::open(file, "x", Json::object());
    study.set_fact("teacher", {{"top1", 50.0}, {"losses", {1.0}}});
    study.add(0, {proposal_of(space, space.whole(), Proposer::kRandom, 0)});
    check_facts(space, study, file);
    damage(study);
    try {
      check_facts(space, study, file);
      ADD_FAILURE() << "must be refused: " << parts[0];
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
      EXPECT_TRUE(contains(error.what(), file)) << error.what();
      for (const auto part : parts) EXPECT_TRUE(contains(error.what(), part)) << error.what();
    }
  };
  for (const Json& wrong : {Json("x"), Json(3), Json::object(), Json::array({nullptr})}) {
    refused([&](store::Study& study) { study.set_fact("teacher", wrong); }, {"teacher", "top1"});
  }
  for (const char* fact : {"seconds", "proposal_seconds", "attempts", "attempts_then", "top1"}) {
    refused([&](store::Study& study) { study.set_facts(0, {{fact, "x"}}); }, {"trial 0", fact});
  }
  for (const char* fact : {"losses", "tops", "latency"}) {
    refused([&](store::Study& study) { study.set_facts(0, {{fact, 3}}); }, {"trial 0", fact});
  }
  for (const char* fact : {"attempts", "attempts_then"}) {
    for (const Json& wrong : {Json(-5), Json(1.5), Json(1e308), Json(1'000'000'000'000)}) {
      refused(
          [&](store::Study& study) {
            study.set_facts(0, {{fact, wrong}});
          },
          {"trial 0", fact, "a count"});
    }
  }
  for (const char* fact : {"macs", "params"}) {
    refused(
        [&](store::Study& study) {
          study.set_facts(0, {{fact, 5}});
        },
        {"trial 0", "its architecture"});
  }
  for (const auto state : {store::TrialState::kComplete, store::TrialState::kPruned}) {
    refused([&](store::Study& study) { study.finish(0, state, NAN, Json::object()); },
            {"trial 0", "no reward"});
  }
  Choice none = space.whole();
  for (BlockChoice& block : none.blocks) block.keep = false;
  refused(
      [&](store::Study& study) {
        study.set_facts(0, {{"architecture", architecture_to_json(space.large(), none)}});
      },
      {"trial 0"});
}

TEST(TrialBookTest, AStudyIsAboutItsNetworkTeacherAndSettingsNotAboutItsLength) {
  SearchConfig config = config_of("vit_mini_28");
  const Exploration space = exploration(config);
  const Json about = study_about(config, space, "fnv1a:1");
  config.trials = 99;
  config.bayes.jobs = 3;
  EXPECT_EQ(study_about(config, space, "fnv1a:1"), about);
  EXPECT_NE(study_about(config, space, "fnv1a:2"), about);
  config.compress.train.data = "synthetic:1x28x28x10x61";
  EXPECT_NE(study_about(config, space, "fnv1a:1"), about) << "other images, whatever their place";
  config.compress.train.data = "synthetic:1x28x28x10x60";
  config.target_macs = "0.9x";
  EXPECT_NE(study_about(config, space, "fnv1a:1"), about);
}

/// A study of networks that were tried, the reward of which is their share of blocks.
store::Study study_of(const Exploration& space, const std::string& file, int64_t count) {
  store::Study study = store::Study::open(file, "x", Json::object());
  Rng rng(3);
  std::vector<store::Proposal> proposals;
  std::vector<double> rewards;
  for (int64_t i = 0; i < count; ++i) {
    const Choice choice = *space.drawn(rng);
    proposals.push_back(proposal_of(space, choice, Proposer::kRandom, 0));
    rewards.push_back(0);
    for (const BlockChoice& block : choice.blocks) rewards.back() += block.keep ? 0.25 : 0;
  }
  study.add(0, proposals);
  for (int64_t i = 0; i < count; ++i) {
    study.finish(i, store::TrialState::kComplete, rewards[static_cast<size_t>(i)], Json::object());
  }
  return study;
}

TEST(TrialBookTest, TheMapIsOfTheTwoMainDirectionsOfAllTrials) {
  const Exploration space = exploration(config_of("vit_mini_28"));
  const TempFolder folder;
  constexpr int64_t kCount = 402;  // of which it learns from every other one
  store::Study study = study_of(space, folder / "study.db", kCount);
  draw_map(space, study, 5);
  const auto trials = study.trials();
  ASSERT_EQ(std::ssize(trials), kCount);
  std::array<double, 2> sums{};
  std::array<double, 2> squares{};
  double product = 0;
  for (const store::StoredTrial& trial : trials) {
    const Json& point = trial.facts.at("point");
    for (size_t k = 0; k < 2; ++k) {
      const auto at = point.at(k).get<double>();
      sums.at(k) += at;
      squares.at(k) += at * at;
    }
    product += point.at(0).get<double>() * point.at(1).get<double>();
  }
  EXPECT_NEAR(sums[0], 0, 1e-6);
  EXPECT_NEAR(sums[1], 0, 1e-6);
  EXPECT_GT(squares[0], squares[1]);
  EXPECT_GT(squares[1], 0);
  EXPECT_NEAR(product, 0, 1e-6 * squares[0]) << "directions at right angles";
  store::Study again = study_of(space, folder / "again.db", kCount);
  draw_map(space, again, 5);
  EXPECT_EQ(again.trials()[7].facts.at("point"), trials[7].facts.at("point"));
}

}  // namespace
}  // namespace adjoin::search
