#include "adjoin/store/study.h"

#include <cmath>
#include <limits>
#include <regex>

#include "store/store_support.h"

namespace adjoin::store {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class StudyTest : public testing::Test {
 protected:
  const TempFolder folder_;
  const std::string path_ = folder_ / "study.db";
};

TEST_F(StudyTest, ComesBackWholeFromItsFile) {
  make_study(path_);
  for (const bool is_read : {false, true}) {
    const Study study = is_read ? Study::read(path_) : open_study(path_);
    EXPECT_EQ(study.about(), some_about());
    EXPECT_EQ(study.fact("best"), Json({{"number", 0}}));
    const auto trials = study.trials();
    ASSERT_EQ(trials.size(), 3U);
    EXPECT_EQ(trials[0].number, 0);
    EXPECT_EQ(trials[0].state, TrialState::kComplete);
    EXPECT_EQ(trials[0].reward, 0.5);
    EXPECT_EQ(trials[0].curve, (std::map<int64_t, double>{{0, 0.25}, {1, 0.5}}));
    EXPECT_EQ(trials[0].facts, Json({{"architecture", {{"depth", 1}}},
                                     {"macs", 0},
                                     {"attempts", 1},
                                     {"seconds", 3},
                                     {"top1", 50.5}}));
    EXPECT_EQ(trials[1].state, TrialState::kRunning);
    EXPECT_EQ(trials[1].reward, std::nullopt);
    EXPECT_EQ(trials[1].curve, (std::map<int64_t, double>{{0, 0.125}}));
    EXPECT_EQ(trials[2].state, TrialState::kWaiting);
    EXPECT_EQ(trials[2].facts, Json({{"architecture", {{"depth", 3}}}, {"macs", 200}}));
  }
}

TEST_F(StudyTest, KeepsEveryStateAndEveryKindOfReward) {
  Study study = open_study(path_);
  study.add(0, proposals(4));
  study.report(0, 0, kNan, Json::object());
  study.report(0, 1, -kInfinity, Json::object());
  study.finish(0, TrialState::kPruned, -kInfinity, Json::object());
  study.finish(1, TrialState::kFailed, kNan, {{"error", "loss is \"nan\"\n"}});
  study.finish(2, TrialState::kComplete, kInfinity, Json::object());
  study.finish(3, TrialState::kComplete, 0.1, Json::object());
  const auto trials = study.trials();
  EXPECT_TRUE(std::isnan(trials[0].curve.at(0)));
  EXPECT_EQ(trials[0].curve.at(1), -kInfinity);
  EXPECT_EQ(trials[0].state, TrialState::kPruned);
  EXPECT_EQ(trials[0].reward, -kInfinity);
  EXPECT_EQ(trials[1].state, TrialState::kFailed);
  EXPECT_EQ(trials[1].reward, std::nullopt);
  EXPECT_EQ(trials[1].facts["error"], "loss is \"nan\"\n");
  EXPECT_EQ(trials[2].reward, kInfinity);
  EXPECT_EQ(trials[3].reward, 0.1);
}

TEST_F(StudyTest, FactsOfTheStudyAreReplacedAndNullWhereNothingIsKnown) {
  Study study = open_study(path_);
  EXPECT_EQ(study.fact("state"), nullptr);
  study.set_fact("state", "first");
  study.set_fact("state", {1, 2, 3});
  EXPECT_EQ(study.fact("state"), Json({1, 2, 3}));
  EXPECT_EQ(study.about(), some_about());
  expect_error(ErrorKind::kInternal, {"about.seed"}, [&] { study.set_fact("about.seed", 8); });
  EXPECT_EQ(study.about(), some_about());
}

TEST_F(StudyTest, AnEpochReportedAgainReplacesWhatWasSaid) {
  Study study = open_study(path_);
  study.add(0, proposals(1));
  study.report(0, 0, 0.1, {{"loss", 2}, {"kept", true}});
  study.report(0, 1, 0.2, Json::object());
  study.report(0, 0, 0.3, {{"loss", 1}});
  study.set_facts(0, {{"macs", 5}});
  const StoredTrial trial = study.trials().at(0);
  EXPECT_EQ(trial.curve, (std::map<int64_t, double>{{0, 0.3}, {1, 0.2}}));
  EXPECT_EQ(trial.facts["loss"], 1);
  EXPECT_EQ(trial.facts["kept"], true);
  EXPECT_EQ(trial.facts["macs"], 5);
}

TEST_F(StudyTest, FactsOfSeveralTrialsAreSetTogetherOrNotAtAll) {
  Study study = open_study(path_);
  study.add(0, proposals(2));
  study.set_facts({{0, Json{{"point", {1, 2}}}}, {1, Json{{"point", {3, 4}}}}});
  EXPECT_EQ(study.trials().at(1).facts["point"], Json({3, 4}));
  expect_error(ErrorKind::kInternal, {"no trial 7"}, [&] {
    study.set_facts({{0, Json{{"point", 0}}}, {7, Json{{"point", 0}}}});
  });
  EXPECT_EQ(study.trials().at(0).facts["point"], Json({1, 2}));
}

TEST_F(StudyTest, AddsNothingWhenAnotherWasFirst) {
  Study study = open_study(path_);
  Study other = open_study(path_);
  EXPECT_TRUE(study.add(0, proposals(2)));
  EXPECT_FALSE(other.add(0, proposals(3)));
  EXPECT_EQ(other.trials().size(), 2U);
  EXPECT_TRUE(other.add(2, proposals(3)));
  EXPECT_EQ(study.trials().size(), 5U);
  EXPECT_EQ(study.trials().back().number, 4);
  expect_error(ErrorKind::kData, {path_, "5", "9"}, [&] { study.add(9, proposals(1)); });
}

TEST_F(StudyTest, RefusesToChangeATrialThatIsOver) {
  Study study = open_study(path_);
  study.add(0, proposals(1));
  study.finish(0, TrialState::kComplete, 0.5, Json::object());
  const auto refuses = [](const char* what, auto act) {
    expect_error(ErrorKind::kInternal, {what}, act);
  };
  refuses("trial 0 is over", [&] { study.report(0, 0, 1, Json::object()); });
  refuses("trial 0 is over", [&] { study.finish(0, TrialState::kFailed, 1, Json::object()); });
  refuses("no trial 1", [&] { study.report(1, 0, 1, Json::object()); });
  refuses("complete, pruned", [&] { study.finish(0, TrialState::kRunning, 1, Json::object()); });
  refuses("object", [&] { study.set_facts(0, Json::array()); });
  study.set_facts(0, {{"later", 1}});
  EXPECT_EQ(study.trials().at(0).facts["later"], 1);
  EXPECT_EQ(study.trials().at(0).reward, 0.5);
}

TEST_F(StudyTest, ClaimsInOrderAndNeverTheSameTwice) {
  Study study = open_study(path_);
  Study other = open_study(path_);
  study.add(0, proposals(3));
  auto first = study.claim();
  auto second = other.claim();
  auto third = study.claim();
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(first->trial().number, 0);
  EXPECT_EQ(second->trial().number, 1);
  EXPECT_EQ(third->trial().number, 2);
  EXPECT_EQ(second->trial().state, TrialState::kRunning);
  EXPECT_EQ(second->trial().facts["attempts"], 1);
  EXPECT_EQ(second->trial().facts["macs"], 100);
  EXPECT_FALSE(study.claim());
  EXPECT_FALSE(other.claim());
}

TEST_F(StudyTest, ATrialThatWasLetGoIsClaimedAgainWithItsCurve) {
  Study study = open_study(path_);
  study.add(0, proposals(2));
  {
    Claim first = *study.claim();
    const Claim moved = std::move(first);
    study.report(0, 0, 0.5, Json::object());
    const auto held = study.claim();
    EXPECT_EQ(held->trial().number, 1);
    study.finish(1, TrialState::kComplete, 1, Json::object());
  }
  const auto again = study.claim();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->trial().number, 0);
  EXPECT_EQ(again->trial().facts["attempts"], 2);
  EXPECT_EQ(again->trial().curve.at(0), 0.5);
}

TEST_F(StudyTest, CountsItsTrialsAndKnowsWhetherSomebodyIsAtOne) {
  Study study = open_study(path_);
  const Study other = Study::read(path_);
  EXPECT_EQ(study.tally().trials, 0);
  EXPECT_TRUE(other.held().empty());
  study.add(0, proposals(3));
  EXPECT_TRUE(study.held().empty()) << "all wait";
  {
    const auto claim = study.claim();
    EXPECT_EQ(study.held(), std::vector<int64_t>{0});
    EXPECT_EQ(other.held(), std::vector<int64_t>{0});
    study.finish(0, TrialState::kPruned, 1, Json::object());
    EXPECT_TRUE(other.held().empty()) << "held, but over";
  }
  study.claim();
  EXPECT_TRUE(other.held().empty()) << "let go";
  EXPECT_EQ(other.tally().trials, 3);
  EXPECT_EQ(other.tally().over, 1);
  EXPECT_EQ(other.tally().open(), 2);
}

TEST_F(StudyTest, OneFileUnderTwoNamesHasTheSameClaims) {
  Study study = open_study(path_);
  study.add(0, proposals(1));
  ASSERT_EQ(symlink(path_.c_str(), (folder_ / "other.db").c_str()), 0);
  Study other = open_study(folder_ / "other.db");
  const auto claim = study.claim();
  EXPECT_TRUE(claim);
  EXPECT_FALSE(other.claim());
}

TEST_F(StudyTest, ADifferenceInWhatItIsAboutIsNamedWithBothValues) {
  make_study(path_);
  const std::string before = read_file(path_);
  const auto open_with = [&](const Json& about) {
    return [this, about] { Study::open(path_, "a study", about); };
  };
  Json changed = some_about();
  changed["budget"] = 2.5;
  expect_error(ErrorKind::kUsage, {path_, "budget", "1.5", "2.5"}, open_with(changed));
  Json less = some_about();
  less.erase("seed");
  expect_error(ErrorKind::kUsage, {path_, "seed 7, not none"}, open_with(less));
  Json more = some_about();
  more["width"] = "all";
  expect_error(ErrorKind::kUsage, {path_, "width none, not \"all\""}, open_with(more));
  EXPECT_EQ(read_file(path_), before);
  Study::Options options;
  options.before = {{"width", "all"}};
  EXPECT_EQ(Study::open(path_, "a study", more, options).trials().size(), 3U)
      << "what it meant before there was such a key";
  options.before = {{"width", "half"}};
  expect_error(ErrorKind::kUsage, {path_, "width \"half\", not \"all\""},
               [&] { Study::open(path_, "a study", more, options); });
  const Json turned = {{"seed", 7}, {"budget", 1.5}, {"model", "deit_tiny"}};
  EXPECT_EQ(Study::open(path_, "a study", turned).trials().size(), 3U);
}

TEST_F(StudyTest, NothingCanBeChangedThroughOneThatIsRead) {
  make_study(path_);
  Study study = Study::read(path_);
  const auto refuses = [&](auto act) { expect_error(ErrorKind::kInternal, {path_, "read"}, act); };
  refuses([&] { study.add(3, proposals(1)); });
  refuses([&] { study.claim(); });
  refuses([&] { study.report(1, 0, 1, Json::object()); });
  refuses([&] { study.finish(1, TrialState::kFailed, 1, Json::object()); });
  refuses([&] { study.set_facts(1, Json::object()); });
  refuses([&] { study.set_fact("x", 1); });
  EXPECT_EQ(study.trials().size(), 3U);
}

TEST_F(StudyTest, SeesWhatOthersWriteWhileItIsRead) {
  Study study = open_study(path_);
  const Study reader = Study::read(path_);
  EXPECT_EQ(reader.trials().size(), 0U);
  study.add(0, proposals(2));
  EXPECT_EQ(reader.trials().size(), 2U);
  study.finish(0, TrialState::kComplete, 0.5, Json::object());
  EXPECT_EQ(reader.trials().at(0).reward, 0.5);
}

TEST_F(StudyTest, HasTheTablesAndColumnsOfOptuna) {
  make_study(path_);
  const std::vector<std::pair<std::string, std::string>> tables = {
      {"alembic_version", "version_num"},
      {"studies", "study_id,study_name"},
      {"study_directions", "study_direction_id,direction,study_id,objective"},
      {"study_system_attributes", "study_system_attribute_id,study_id,key,value_json"},
      {"study_user_attributes", "study_user_attribute_id,study_id,key,value_json"},
      {"trial_heartbeats", "trial_heartbeat_id,trial_id,heartbeat"},
      {"trial_intermediate_values",
       "trial_intermediate_value_id,trial_id,step,intermediate_value,intermediate_value_type"},
      {"trial_params", "param_id,trial_id,param_name,param_value,distribution_json"},
      {"trial_system_attributes", "trial_system_attribute_id,trial_id,key,value_json"},
      {"trial_user_attributes", "trial_user_attribute_id,trial_id,key,value_json"},
      {"trial_values", "trial_value_id,trial_id,objective,value,value_type"},
      {"trials", "trial_id,number,study_id,state,datetime_start,datetime_complete"},
      {"version_info", "version_info_id,schema_version,library_version"}};
  std::vector<std::string> names;
  for (const auto& [name, columns] : tables) {
    names.push_back(name);
    EXPECT_EQ(run_sql(path_, "SELECT group_concat(name) FROM pragma_table_info('" + name + "')"),
              std::vector{columns});
  }
  EXPECT_EQ(run_sql(path_, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"),
            names);
  // By table: the columns that are unique together.
  EXPECT_EQ(run_sql(path_,
                    "SELECT m.name || ':' || (SELECT group_concat(name) FROM "
                    "pragma_index_info(l.name)) FROM sqlite_master m, pragma_index_list(m.name) l "
                    "WHERE m.type = 'table' AND l.[unique] ORDER BY 1"),
            (std::vector<std::string>{
                "alembic_version:version_num", "studies:study_name",
                "study_directions:study_id,objective", "study_system_attributes:study_id,key",
                "study_user_attributes:study_id,key", "trial_heartbeats:trial_id",
                "trial_intermediate_values:trial_id,step", "trial_params:trial_id,param_name",
                "trial_system_attributes:trial_id,key", "trial_user_attributes:trial_id,key",
                "trial_values:trial_id,objective"}));
}

TEST_F(StudyTest, HasTheRowsThatOptunaReads) {
  make_study(path_);
  const auto rows = [&](const std::string& sql) { return run_sql(path_, sql); };
  using Rows = std::vector<std::string>;
  EXPECT_EQ(rows("SELECT * FROM version_info"), Rows{"1|12|4.0.0"});
  EXPECT_EQ(rows("SELECT * FROM alembic_version"), Rows{"v3.2.0.a"});
  EXPECT_EQ(rows("SELECT * FROM studies"), Rows{"1|a study"});
  EXPECT_EQ(rows("SELECT direction, study_id, objective FROM study_directions"),
            Rows{"MAXIMIZE|1|0"});
  EXPECT_EQ(rows("SELECT number, study_id, state FROM trials"),
            (Rows{"0|1|COMPLETE", "1|1|RUNNING", "2|1|WAITING"}));
  EXPECT_EQ(rows("SELECT objective, value, value_type FROM trial_values"), Rows{"0|0.5|FINITE"});
  EXPECT_EQ(rows("SELECT step, intermediate_value, intermediate_value_type "
                 "FROM trial_intermediate_values WHERE trial_id = 1"),
            (Rows{"0|0.25|FINITE", "1|0.5|FINITE"}));
  EXPECT_EQ(rows("SELECT param_name, param_value, distribution_json FROM trial_params "
                 "WHERE trial_id = 3"),
            (Rows{"depth|3.0|{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, "
                  "\"step\": 1, \"low\": 1, \"high\": 8}}",
                  "norm|1.0|{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": "
                  "[\"pre\", \"post\"]}}"}));
  EXPECT_EQ(rows("SELECT key, value_json FROM study_user_attributes"),
            (Rows{"about.model|\"deit_tiny\"", "about.budget|1.5", "about.seed|7",
                  "best|{\"number\":0}"}));
  const auto times = rows("SELECT datetime_start, datetime_complete FROM trials");
  const std::regex moment(R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6})");
  EXPECT_TRUE(std::regex_match(times.at(0), std::regex(R"([-\d :.]{26}\|[-\d :.]{26})")));
  EXPECT_TRUE(std::regex_search(times[0], moment)) << times[0];
  EXPECT_EQ(times.at(2), "NULL|NULL");
  EXPECT_EQ(rows("PRAGMA journal_mode"), Rows{"wal"});
}

}  // namespace
}  // namespace adjoin::store
