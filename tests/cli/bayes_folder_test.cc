// Folders of searches by --method bayes: where one may lie, what is part of one, and what stays in
// it when it goes on.
#include <gtest/gtest.h>

#include "cli/bayes_runs.h"

namespace adjoin {
namespace {

Words brief(const std::string& output, const Words& more = {}) {
  Words args = bayes("vit_mini_28", output, {"--search-epochs", "1", "--trials", "2"});
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(BayesFolderTest, WhereNoStudyCanLieIsRefusedBeforeATeacherIsTrained) {
  const TempFolder folder;
  std::string longest = folder.path();
  for (int i = 0; i < 3; ++i) longest += "/" + std::string(170, 'q');
  expect_refusal(brief(longest), kUsage, {"study.db", "at most 504 bytes", "--output"});
  expect_refusal(brief(folder / "n\xff"), kUsage, {"--output", "not UTF-8"});
  expect_refusal(small_run("vit_mini_28", folder / "n\xff"), kUsage, {"--output", "not UTF-8"});
  EXPECT_FALSE(exists(folder / std::string(170, 'q')));
}

TEST(BayesFolderTest, PartsOfASearchAreNoSearches) {
  const TempFolder folder;
  const std::string run = folder / "run";
  result_of(brief(run, {"--no-retrain"}));
  for (const char* part : {"/teacher", "/search/trial-001"}) {
    const std::string log = read_file(run + part + "/log.jsonl");
    expect_refusal(brief(run + part, {"--resume"}), kUsage, {part, "part of another search"});
    EXPECT_EQ(read_file(run + part + "/log.jsonl"), log);
  }
  expect_refusal(brief(run, {"--dry-run"}), kUsage, {"holds a search already"});
  result_of(brief(run + "/beside", {"--no-retrain"}));  // no part of it
}

TEST(BayesFolderTest, WhatWasTrainedStaysKnownWithoutAnotherTraining) {
  const TempFolder folder;
  const std::string run = folder / "run";
  const Json first = result_of(brief(run));
  const Words again = {"search", "--resume", "--output", run, "--no-retrain"};
  const Json second = result_of(again);
  for (const char* network : {"large", "small"}) {
    for (const char* part : {"top1", "loss", "params", "file"}) {
      EXPECT_EQ(second.at(network).at(part), first.at(network).at(part)) << network << part;
    }
  }
  EXPECT_EQ(second.at("seconds"), first.at("seconds"));
  std::filesystem::rename(run, folder / "moved");
  const Json moved =
      result_of({"search", "--resume", "--output", folder / "moved", "--no-retrain"});
  EXPECT_EQ(moved.at("small").at("file"), folder / "moved/small.safetensors");
  EXPECT_EQ(moved.at("small").at("top1"), first.at("small").at("top1"));
}

TEST(BayesFolderTest, WhatIsNoLongerThereIsNotWhatWasTrained) {
  const TempFolder folder;
  const std::string run = folder / "run";
  const Json first = result_of(brief(run));
  const Words again = {"search", "--resume", "--output", run, "--no-retrain"};
  const std::string small = run + "/small.safetensors";
  const std::string bytes = read_file(small);
  const std::string known = read_file(run + "/result.json");
  for (const auto& [part, wrong] :
       std::vector<std::pair<const char*, Json>>{{"/small/top1", "x"},
                                                 {"/large", 3},
                                                 {"/small/file", 3},
                                                 {"/seconds", "x"},
                                                 {"/finalists", {{{"trial", "x"}}}}}) {
    Json changed = parse_json(known, "result.json");
    changed[Json::json_pointer(part)] = wrong;
    std::ofstream(run + "/result.json") << changed;
    EXPECT_FALSE(result_of(again).at("small").contains("file")) << part;
  }
  std::ofstream(run + "/result.json") << known.substr(0, known.size() / 2);
  EXPECT_FALSE(result_of(again).at("small").contains("file"));
  std::ofstream(run + "/result.json") << known;
  std::filesystem::remove(small);
  expect_refusal(again, kBadData, {small + ": is not there", "--retrain"});
  EXPECT_EQ(read_file(run + "/result.json"), known);
  EXPECT_EQ(result_of({"search", "--resume", "--output", run, "--retrain"}).at("small").at("top1"),
            first.at("small").at("top1"));
  EXPECT_EQ(read_file(small), bytes);
}

TEST(BayesFolderTest, SettingsOfAResumedSearchCountFromTheFirstStepOfItsTeacher) {
  const TempFolder folder;
  const std::string run = folder / "run";
  const Words same = {"--resume", "--epochs", "50", "--no-retrain"};
  for (const char* trials : {"2", "3"}) {
    Words args = brief(run, same);
    args.insert(args.end(), {"--trials", trials});
    const int64_t before = log_lines(run + "/teacher");
    RunningProgram program(ADJOIN_BINARY, args);
    ASSERT_TRUE(wait_until(program, [&] { return log_lines(run + "/teacher") > before + 2; }))
        << program.wait().err;
    program.signal(SIGTERM);
    EXPECT_EQ(program.wait().exit_code, 143);
  }
  expect_refusal(brief(run, {"--resume", "--epochs", "51"}), kUsage, {"epochs", "51", "50"});
  EXPECT_EQ(result_of({"search", "--resume", "--output", run}).at("trials"), 3);
}

TEST(BayesFolderTest, HowWhatWasFoundIsTrainedMayChange) {
  const TempFolder folder;
  const std::string run = folder / "run";
  result_of(brief(run, {"--no-retrain"}));
  const Json result = result_of({"search", "--resume", "--output", run, "--retrain",
                                 "--final-training", "adjoined", "--lambda-max", "0.5"});
  EXPECT_TRUE(exists(run + "/large.safetensors"));
  EXPECT_EQ(result.at("large").at("file"), run + "/large.safetensors");
}

TEST(BayesFolderTest, HowWhatWasFoundIsTrainedMayChangeWhereverTheSearchWasCutOff) {
  const TempFolder folder;
  const std::string run = folder / "run";
  for (const char* part : {"/teacher", "/search/trial-001"}) {
    RunningProgram program(ADJOIN_BINARY, brief(run, {"--resume", "--search-epochs", "20"}));
    ASSERT_TRUE(wait_until(program, [&] { return log_lines(run + part) > 1; }))
        << program.wait().err;
    program.signal(SIGTERM);
    EXPECT_EQ(program.wait().exit_code, 143);
  }
  const auto trained = [&](const Words& more) {
    const ProgramResult result = adjoin({"search", "--resume", "--output", run, "--json"}, more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result;
  };
  trained({"--final-training", "adjoined", "--lambda-max", "0.5"});
  const std::string first = read_file(run + "/small.safetensors");
  trained({});
  EXPECT_EQ(read_file(run + "/small.safetensors"), first);
  trained({"--lambda-max", "0.25"});
  EXPECT_NE(read_file(run + "/small.safetensors"), first) << "trained anew";
  EXPECT_EQ(read_file(run + "/previous/1/small.safetensors"), first);
  const ProgramResult last = trained({"--final-training", "distillation"});
  EXPECT_NE(last.err.find("lambda_max: has no effect without --final-training adjoined"),
            std::string::npos)
      << last.err;
  EXPECT_FALSE(exists(run + "/large.safetensors"));
}

TEST(BayesFolderTest, SeveralSeedsGoOnWithoutSayingAllAgain) {
  const TempFolder folder;
  const std::string run = folder / "run";
  result_of(brief(run, {"--no-retrain", "--seeds", "1,2"}));
  const Json all =
      result_of({"search", "--resume", "--output", run, "--seeds", "1,2", "--trials", "3"});
  for (const Json& one : all.at("runs")) EXPECT_EQ(one.at("trials"), 3);
  // What is known of one alone has no mean.
  result_of(brief(run + "/alone", {"--no-retrain", "--seeds", "1,2"}));
  result_of({"search", "--resume", "--output", run + "/alone/seed-1", "--retrain"});
  const Json some = result_of(
      {"search", "--resume", "--output", run + "/alone", "--seeds", "1,2", "--no-retrain"});
  EXPECT_TRUE(some.at("mean").contains("macs"));
  EXPECT_FALSE(some.at("mean").contains("small"));
}

}  // namespace
}  // namespace adjoin
