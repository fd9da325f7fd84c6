// What a page says of a study: its trials, those that no other beats, and the network that won.
#include "adjoin/report/study_section.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "adjoin/report/search_section.h"
#include "adjoin/report/svg.h"
#include "adjoin/spec/architecture.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/derive.h"
#include "support/page_text.h"

namespace adjoin::report {
namespace {

using store::StoredTrial;
using store::TrialState;

StoredTrial trial(int64_t number, double reward, Json facts,
                  TrialState state = TrialState::kComplete) {
  return {number, state, reward, {}, std::move(facts)};
}

Json costs(double top1, int64_t macs, int64_t params) {
  return {{"top1", top1}, {"macs", macs}, {"params", params}};
}

StudyView view_of(const std::vector<StoredTrial>& trials, const StudyFacts& facts = {},
                  const std::optional<ModelSpec>& large = std::nullopt) {
  std::vector<std::string> problems;
  StudyView view = study_view(trials, facts, large, problems);
  EXPECT_TRUE(problems.empty()) << problems.front();
  return view;
}

std::string chart(const std::string& page, const std::string& title) {
  return between(page, "<h3>" + title, "</svg>");
}

ModelSpec made(const ModelSpec& large, const Choice& choice) {
  return derive(large, choice, Geometry::kKept).spec;
}

TEST(StudySectionTest, TheFrontHoldsThoseThatNoOtherBeats) {
  //                                   0        1        2        3        4        5
  EXPECT_EQ(pareto_front({{30, 70}, {10, 50}, {20, 49}, {20, 60}, {40, 70}, {10, 50}}),
            (std::vector<size_t>{1, 3, 0}));
  EXPECT_TRUE(pareto_front({}).empty());
}

TEST(StudySectionTest, TheFrontIsOneLineThroughCompleteTrials) {
  const StudyView view =
      view_of({trial(0, 1, costs(50, 10000000, 7000000)), trial(1, 1, costs(60, 20000000, 8000000)),
               trial(2, 1, costs(55, 30000000, 9000000)),
               trial(3, 1, costs(99, 15000000, 7500000), TrialState::kPruned)});
  const std::string picture = chart(study_section(view), "Accuracy against MACs");
  const std::string path = between(picture, "<path class=\"line c2\"", "/>");
  EXPECT_EQ(count_of(path, "M"), 1U);
  EXPECT_EQ(count_of(path, " L"), 1U) << "two of four are joined: " << path;
  EXPECT_EQ(count_of(picture, "<title>trial "), 4U) << "every trial has a dot";
  expect_all(picture, {"class=\"ring", "million MACs", "trial 3, stopped early"});
}

TEST(StudySectionTest, CountsTrialsAndNamesTheWinner) {
  std::vector<StoredTrial> trials = {trial(0, 0.5, costs(71.25, 250000000, 3000000)),
                                     trial(1, 0.8125, costs(70.5, 100000000, 2000000)),
                                     trial(2, 0.25, {}, TrialState::kPruned),
                                     trial(3, NAN, {}, TrialState::kFailed),
                                     trial(4, NAN, {}, TrialState::kWaiting),
                                     trial(5, NAN, {}, TrialState::kRunning)};
  trials[5].curve = {{0, 0.125}, {1, 0.375}};
  const StudyFacts facts = {costs(75, 400000000, 8000000), 0, {{"macs", 260000000}}};
  const std::string page = study_section(view_of(trials, facts));
  expect_all(page, {"6 trials: 2 complete, 1 stopped early, 1 failed, 1 begun, 1 waiting.",
                    "The winner is trial 0: reward 0.5000, 71.25 % top-1 (teacher 75.00 %), "
                    "250,000,000 MACs (0.625 of the teacher&#39;s), 3,000,000 parameters "
                    "(0.375 of the teacher&#39;s).",
                    "<b class=\"c1\">0</b>", ">teacher</text>", ">winner</text>"});
  EXPECT_TRUE(contains(chart(page, "Reward over time"), "trial 5, begun, reward 0.3750"));
  EXPECT_TRUE(contains(chart(page, "Accuracy against MACs"), ">target</text>"));
  EXPECT_FALSE(contains(chart(page, "Accuracy against parameters"), ">target</text>"));
  EXPECT_FALSE(contains(page, "nan"));
}

TEST(StudySectionTest, WithoutAChosenOneTheBestCompleteTrialIsTheBestSoFar) {
  const std::string page = study_section(
      view_of({trial(0, 0.5, {}), trial(1, 0.75, {}), trial(2, 0.9, {}, TrialState::kPruned)}));
  EXPECT_TRUE(contains(page, "The best so far is trial 1: reward 0.7500."));
  EXPECT_TRUE(contains(study_section(view_of({trial(0, NAN, {}, TrialState::kRunning)})),
                       "1 trial: 0 complete, 0 stopped early, 0 failed, 1 begun, 0 waiting. None "
                       "is complete with a reward."));
}

TEST(StudySectionTest, WhatCameAfterTheChoiceOfTheWinnerIsSaid) {
  const std::vector<StoredTrial> trials = {trial(0, 0.5, {}), trial(1, 0.75, {})};
  const auto said = [&](const StudyFacts& facts) {
    std::vector<std::string> problems;
    study_view(trials, facts, std::nullopt, problems);
    return problems;
  };
  EXPECT_TRUE(said({{}, 1, {}, 2, {{"trial", 1}}}).empty());
  const auto one = said({{}, 1, {}, 1, {{"trial", 0}}});
  ASSERT_EQ(one.size(), 2U);
  EXPECT_TRUE(one[0].starts_with("1 trial ended after the winner was chosen")) << one[0];
  EXPECT_TRUE(one[1].starts_with("The networks here are of trial 0; trial 1,")) << one[1];
}

TEST(StudySectionTest, TheLineOfTheBestRisesInSteps) {
  const std::string page =
      study_section(view_of({trial(0, 1, {}), trial(1, 0, {}), trial(2, 2, {}), trial(3, 1, {})}));
  const std::string path =
      between(chart(page, "Reward over time"), "<path class=\"line c1\"", "/>");
  EXPECT_EQ(count_of(path, " L"), 3U) << "along, up, along: " << path;
}

TEST(StudySectionTest, TheTableHasTheBestTenWithTheirBlocks) {
  const ModelSpec large = catalog_spec("vit_mini_28");
  std::vector<StoredTrial> trials;
  for (int i = 0; i < 12; ++i) trials.push_back(trial(100 + i, 0.01 * i, {{"seconds", 12.5}}));
  StudyView view = view_of(trials);
  Choice choice = keep_everything(large);
  choice.blocks[1].keep = false;
  choice.skips = {{0, 2}};
  view.trials[11].choice = choice;
  const std::string table = between(study_section(view), "<h3>The best 10 trials</h3>", "</table>");
  EXPECT_EQ(count_of(table, "<tr>"), 11U);
  EXPECT_TRUE(contains(table, fmt::format("<td>{} of {}</td><td>1</td>", choice.blocks.size() - 1,
                                          choice.blocks.size())))
      << table;
  expect_all(table, {">111</b>", "<td>102</td>", "<td>12.50</td>", "complete"});
  EXPECT_FALSE(contains(table, "<td>101</td>"));
  EXPECT_FALSE(contains(table, "MACs")) << "nothing is known of them";
}

TEST(StudySectionTest, TheEmbeddingIsDarkerWhereTheRewardIsHigher) {
  const std::vector<StoredTrial> with = {
      trial(0, 0.25, {{"point", {0, 1}}}), trial(1, 0.75, {{"point", {2, 3}}}),
      trial(2, NAN, {{"point", {1, 1}}}, TrialState::kWaiting), trial(3, 9, {})};
  const std::string picture = chart(study_section(view_of(with)), "Where the networks are");
  EXPECT_EQ(count_of(picture, "<title>trial "), 3U);
  expect_all(picture, {"reward 0.250<", ">0.750<", "fill-opacity=\"1.00\"><title>trial 1",
                       "fill-opacity=\"0.12\"><title>trial 0", "class=\"ring"});
  EXPECT_LT(picture.find("<title>trial 0"), picture.find("<title>trial 1")) << "the best on top";
  EXPECT_FALSE(contains(study_section(view_of({trial(0, 1, {})})), "embedding"));
}

TEST(StudySectionTest, TheWinnerIsDrawnOnceFromItsArchitecture) {
  const ModelSpec large = catalog_spec("vit_mini_28");
  const Json found = architecture_to_json(large, choice_from_alphas(large, {2}));
  SearchView search;
  search.study = view_of({trial(0, 1, {{"architecture", found}})}, {}, large);
  ASSERT_TRUE(search.study->drawn);
  search.found = search.study->drawn;
  const std::string page = search_section(search);
  EXPECT_LT(page.find("The search"), page.find("1 trial: 1 complete"));
  EXPECT_EQ(count_of(page, ">hidden units<"), 1U);
  EXPECT_TRUE(contains(page, "4 of 8"));
  search.study.reset();
  EXPECT_TRUE(contains(search_section(search), "What was found"));
}

TEST(StudySectionTest, NothingIsShownWithoutTrials) {
  EXPECT_EQ(study_section(view_of({}, {costs(75, 1, 1), nullptr, nullptr})), "");
}

TEST(StudySectionTest, FactsThatCannotBeReadAreCountedAndTheRestIsShown) {
  const ModelSpec large = catalog_spec("vit_mini_28");
  std::vector<StoredTrial> trials = {
      trial(7, 0.5,
            {{"top1", "high"},
             {"macs", -3},
             {"params", {1}},
             {"seconds", true},
             {"proposer", 1},
             {"latency_ms", Json::object()},
             {"point", {1, nullptr}},
             {"architecture", "none"}}),
      trial(8, 0.25, {{"top1", 101}, {"macs", 1e300}, {"point", {1, 2, 3}}}),
      trial(9, INFINITY, Json::array({1})), trial(10, 0.75, costs(61.5, 1000, 10))};
  std::vector<std::string> problems;
  const StudyView view = study_view(trials, {"teacher", 99, {{"macs", "few"}}}, large, problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0], "15 facts of the study cannot be read, the first is top1 of trial 7.");
  const std::string page = study_section(view);
  expect_all(page, {"4 trials: 4 complete", "The best so far is trial 10", "61.50"});
  EXPECT_FALSE(contains(page, "inf") || contains(page, "nan"));
  EXPECT_FALSE(view.trials[2].reward.has_value());
}

TEST(StudySectionTest, AnyFactMayBeOfAnyType) {
  const std::vector<Json> values = {nullptr,
                                    true,
                                    -1,
                                    1e308,
                                    "x",
                                    Json::array(),
                                    {{"macs", {}}},
                                    Json::array({Json::array(), nullptr})};
  const ModelSpec large = catalog_spec("vit_mini_28");
  for (const char* name : {"architecture", "macs", "params", "top1", "losses", "tops", "seconds",
                           "point", "latency_ms", "proposer", "attempts"}) {
    for (const Json& value : values) {
      std::vector<std::string> problems;
      const StudyView view = study_view({trial(0, 0.5, {{name, value}}), trial(1, 0.25, value)},
                                        {value, value, value}, large, problems);
      EXPECT_TRUE(contains(study_section(view), "2 trials: 2 complete")) << name << value;
    }
  }
}

TEST(StudySectionTest, TextIsNotMarkup) {
  const std::string page = study_section(view_of({trial(0, 1, {{"proposer", "<script>x"}})}));
  EXPECT_FALSE(contains(page, "<script>"));
  EXPECT_TRUE(contains(page, "&lt;script&gt;x"));
}

TEST(StudySectionTest, OfThousandsTheBestAndSomeOthersAreShown) {
  std::vector<StoredTrial> trials;
  for (int i = 0; i < 9000; ++i) {
    Json facts = costs(40 + 0.001 * (i % 100), 1000000 + 7919 * i % 9000, 5000 + i);
    facts["point"] = {i % 97, i % 89};
    trials.push_back(trial(i, i % 1000, std::move(facts)));
  }
  const std::string page = study_section(view_of(trials));
  expect_all(page, {"Charts show at most 2,000 trials", "9,000 complete"});
  for (const char* title : {"Reward over time", "Where the networks are", "Accuracy against MACs",
                            "Accuracy against parameters"}) {
    const size_t dots = count_of(chart(page, title), "<title>trial ");
    EXPECT_LE(dots, 2000U) << title;
    EXPECT_GT(dots, 1800U) << title;
  }
  for (int i = 999; i < 9000; i += 1000) {
    EXPECT_TRUE(contains(chart(page, "Reward over time"), fmt::format("<title>trial {},", i))) << i;
  }
}

TEST(ArchitectureTest, RemovedBlocksAreDashedAndNamed) {
  const ModelSpec large = catalog_spec("vit_mini_28");
  EXPECT_FALSE(contains(architecture(large, large, 1), "removed"));
  Choice choice = keep_everything(large);
  choice.blocks[1].keep = choice.blocks[3].keep = false;
  const std::string picture = architecture(large, made(large, choice), 1);
  EXPECT_EQ(count_of(picture, ">removed<"), 2U);
  EXPECT_EQ(count_of(picture, "class=\"outline\""), 2 * choice.blocks.size());
  EXPECT_EQ(count_of(picture, "class=\"fill c1\""), 2 * (choice.blocks.size() - 2));
  const std::string row = between(picture, ">blocks.1<", ">blocks.2<");
  expect_all(row, {"stroke-dasharray", ">removed<"});
}

TEST(ArchitectureTest, SkipsLeadFromRowToRowOfTheBlocksThatStay) {
  const ModelSpec large = catalog_spec("vit_mini_28");
  EXPECT_FALSE(contains(architecture(large, large, 1), "skip"));
  Choice choice = keep_everything(large);
  choice.blocks[0].keep = false;
  choice.skips = {{1, 3}};
  const std::string picture = architecture(large, made(large, choice), 1);
  // Rows are 20 apart, the middle of the first at 30: of the second 50, of the fourth 90.
  const std::string arc = between(picture, "<path class=\"line skip c1\"", "</path>");
  expect_all(arc, {" 53.0 C", " 87.0\"", "identity: blocks.0 to blocks.2"});
  EXPECT_FALSE(contains(arc, "dasharray")) << "an identity is a whole line";
}

TEST(ArchitectureTest, StagesOfSwinAreDrawnTheSameWay) {
  const ModelSpec large = catalog_spec("swin_mini_28");  // two blocks, then four
  Choice choice = keep_everything(large);
  choice.blocks[3].keep = false;
  choice.skips = {{2, 5}};
  const std::string picture = architecture(large, made(large, choice), 1);
  expect_all(picture, {"identity: layers.1.blocks.0 to layers.1.blocks.2", ">layers.1.blocks.3<"});
  EXPECT_TRUE(contains(between(picture, ">layers.1.blocks.1<", ">layers.1.blocks.2<"), "removed"));
  const std::string arc = between(picture, "<path class=\"line skip c1\"", "</path>");
  expect_all(arc, {" 73.0 C", " 127.0\""});
}

TEST(ArchitectureTest, ABlockWithOtherNormsSaysSo) {
  const ModelSpec large = catalog_spec("vit_mini_28");
  EXPECT_FALSE(contains(architecture(large, large, 1), ">norm<"));
  Choice choice = keep_everything(large);
  choice.blocks[2].norm = NormPlacement::kResPost;
  ModelSpec small = large;
  size_t next = 0;
  for_each_block(small, [&](BlockSpec& block) { block.norm = choice.blocks[next++].norm; });
  const std::string picture = architecture(large, small, 1);
  EXPECT_EQ(count_of(picture, ", was "), 1U);
  EXPECT_TRUE(contains(between(picture, ">blocks.2<", ">blocks.3<"), ">res-post, was pre<"));
}

}  // namespace
}  // namespace adjoin::report
