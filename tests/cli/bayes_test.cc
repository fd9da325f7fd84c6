// adjoin search --method bayes from end to end: families, rewards, what comes out and goes on.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "adjoin/io/onnx/export.h"
#include "adjoin/store/study.h"
#include "cli/bayes_runs.h"
#include "support/python_folder.h"

namespace adjoin {
namespace {

class BayesTest : public testing::TestWithParam<const char*> {};

TEST_P(BayesTest, TrainsATeacherTriesNetworksAndHandsOverOneWithinTheTarget) {
  const TempFolder folder;
  const std::string run = folder / "r";
  const std::map<std::string, Words> ways = {
      {"vit_mini_28", {"--proposer", "embedding", "--norms", "pre,res-post"}},
      {"t2t_mini_28", {"--reward-by", "tse-ema", "--distillation", "soft", "--finalists", "2"}},
      {"swin_mini_28",
       {"--skips", "circulant", "--final-training", "adjoined", "--reward-cost", "latency"}}};
  const Json result = result_of(bayes(GetParam(), run, ways.at(GetParam())));
  EXPECT_EQ(result.at("trials"), 5);
  const Json& states = result.at("states");
  EXPECT_EQ(states.at("complete").get<int64_t>() + states.at("stopped").get<int64_t>(), 5);
  EXPECT_LE(result.at("macs").get<int64_t>(), result.at("target").at("macs").get<int64_t>());
  const Json cost = result_of({"cost", run + "/small.safetensors"});
  EXPECT_EQ(cost.at("macs"), result.at("macs"));
  EXPECT_EQ(std::ssize(cost.at("blocks")), kept_blocks(result));
  EXPECT_EQ(
      result_of({"cost", GetParam(), "--alphas", "@" + run + "/architecture.json"}).at("macs"),
      result.at("macs"));
  EXPECT_GT(result.at("small").at("top1").get<double>(), 0);
  EXPECT_EQ(exists(run + "/small.onnx"), io::has_onnx());
  EXPECT_FALSE(exists(run + "/search/trial-000/last.ckpt")) << "weights of trials are not kept";
  for (const store::StoredTrial& trial : store::Study::read(run + "/study.db").trials()) {
    const Json& point = trial.facts.at("point");
    EXPECT_TRUE(std::isfinite(point.at(0).get<double>() + point.at(1).get<double>())) << point;
  }
  const std::string page = read_file(run + "/report.html");
  for (const char* shown : {"in the learned embedding", "Accuracy against MACs", "The winner"}) {
    EXPECT_NE(page.find(shown), std::string::npos) << shown;
  }
  const Json again = result_of({"search", "--resume", "--output", run});
  EXPECT_EQ(again.at("architecture"), result.at("architecture"));
  EXPECT_EQ(again.at("small").at("top1"), result.at("small").at("top1"));
}

INSTANTIATE_TEST_SUITE_P(Families, BayesTest,
                         testing::Values("vit_mini_28", "t2t_mini_28", "swin_mini_28"),
                         [](const auto& one) { return std::string(one.param); });

TEST(BayesTrialTest, OneThatIsHopelessIsStoppedEarly) {
  const TempFolder folder;
  const std::string run = folder / "run";
  const Json result = result_of(bayes("vit_mini_28", run,
                                      {"--trials", "8", "--search-epochs", "9", "--halving", "3",
                                       "--epochs", "1", "--no-retrain"}));
  EXPECT_GT(result.at("states").at("stopped").get<int64_t>(), 0);
  EXPECT_GT(result.at("states").at("complete").get<int64_t>(), 0);
  for (const store::StoredTrial& trial : store::Study::read(run + "/study.db").trials()) {
    const bool is_whole = trial.state == store::TrialState::kComplete;
    const auto epochs = std::ssize(trial.curve);
    EXPECT_TRUE(is_whole ? epochs == 9 : epochs == 1 || epochs == 3) << trial.number;
    EXPECT_EQ(trial.reward, trial.curve.rbegin()->second) << "the last one is known";
  }
}

TEST(BayesTrialTest, EachSaysHowFarTheSearchIs) {
  const TempFolder folder;
  const ProgramResult result =
      adjoin(bayes("vit_mini_28", folder / "r",
                   {"--trials", "3", "--search-epochs", "1", "--epochs", "1", "--no-retrain"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::regex first(
      "trial 0: reward [0-9.]+, .*; 1 of 3 over, best .* \\(trial 0\\), .* left");
  const std::regex last("trial 2: reward [0-9.]+, .*; 3 of 3 over, best .* \\(trial [0-2]\\)\\n");
  EXPECT_TRUE(std::regex_search(result.err, first)) << result.err;
  EXPECT_TRUE(std::regex_search(result.err, last)) << result.err;
}

TEST(BayesTrialTest, NoneBeginsWhenTheTimeIsUp) {
  const TempFolder folder;
  const std::string run = folder / "r";
  const Json result = result_of(
      bayes("vit_mini_28", run,
            {"--trials", "50", "--budget-minutes", "0.000001", "--halving", "4", "--no-retrain"}));
  EXPECT_EQ(result.at("states").at("complete"), 1);
  EXPECT_EQ(result.at("states").at("open"), 1) << "proposed, and left";
  const Json fewer =
      result_of({"search", "--resume", "--output", run, "--budget-minutes", "0", "--trials", "1"});
  EXPECT_EQ(fewer.at("states"), result.at("states")) << "as many as are wanted are over";
}

TEST(BayesTrialTest, NoMoreAreTriedThanThereAreWithinTheTarget) {
  const TempFolder folder;
  const int64_t least =
      result_of(bayes("vit_mini_28", folder / "one", {"--trials", "1", "--no-retrain"}))
          .at("feasible")
          .at("macs")
          .at(0);
  const ProgramResult few =
      adjoin(bayes("vit_mini_28", folder / "few",
                   {"--target-macs", std::to_string(least), "--trials", "20", "--search-epochs",
                    "1", "--jobs", "2", "--no-retrain", "--json"}));
  ASSERT_EQ(few.exit_code, 0) << few.err;
  const auto tried = parse_json(few.out, "stdout").at("trials").get<int64_t>();
  EXPECT_GE(tried, 1);
  EXPECT_LE(tried, 4) << "one for each block";
  EXPECT_NE(few.err.find("no other networks within the target were found"), std::string::npos)
      << few.err;
}

TEST(BayesResumeTest, TrainsTheNewBestWhereMoreTrialsFindOne) {
  const TempFolder folder;
  const std::string run = folder / "run";
  // The smaller, the better: a later trial wins sooner or later.
  const Words more = {"--halving", "0",          "--resume", "--search-epochs",
                      "1",         "--epochs",   "1",        "--target-macs",
                      "0.9x",      "--reward-b", "0.001",    "--reward-cost",
                      "params"};
  result_of(bayes("vit_mini_28", run, more), {"--trials", "1", "--no-retrain"});
  EXPECT_FALSE(exists(run + "/small.safetensors"));
  std::set<int64_t> winners;
  for (int64_t trials = 1; trials < 10; trials += 2) {
    const Json result = result_of(bayes("vit_mini_28", run, more),
                                  {"--trials", std::to_string(trials), "--retrain"});
    winners.insert(result.at("best").get<int64_t>());
    EXPECT_EQ(result.at("trials"), trials);
    EXPECT_EQ(result_of({"cost", run + "/small.safetensors"}).at("macs"), result.at("macs"));
    EXPECT_EQ(exists(run + "/previous/1/small.safetensors"), winners.size() > 1);
  }
  EXPECT_GT(winners.size(), 1U) << "the test needs another seed";
  // What was trained makes room for one that is found and not trained, with all that is known of
  // it.
  const std::string other = folder / "other";
  result_of(bayes("vit_mini_28", other, more), {"--trials", "1"});
  const std::string bytes = read_file(other + "/small.safetensors");
  const std::string known = read_file(other + "/result.json");
  const std::string log = read_file(other + "/log.jsonl");
  const ProgramResult found =
      adjoin(bayes("vit_mini_28", other, more), {"--trials", "9", "--no-retrain"});
  EXPECT_NE(found.err.find("is the best now; --retrain trains it"), std::string::npos) << found.err;
  EXPECT_FALSE(exists(other + "/small.safetensors"));
  EXPECT_EQ(read_file(other + "/previous/1/small.safetensors"), bytes);
  EXPECT_EQ(read_file(other + "/previous/1/result.json"), known);
  EXPECT_EQ(read_file(other + "/previous/1/log.jsonl"), log);
  EXPECT_EQ(result_of({"report", other + "/previous/1"}).at("runs").size(), 1U);
  EXPECT_EQ(read_file(other + "/report.html").find("class=\"problems\""), std::string::npos);
  result_of(bayes("vit_mini_28", run, more), {"--trials", "9", "--final-training", "adjoined"});
  EXPECT_TRUE(exists(run + "/large.safetensors"));
  const Json last =
      result_of(bayes("vit_mini_28", run, more),
                {"--trials", "9", "--finalists", "2", "--final-training", "distillation"});
  EXPECT_EQ(last.at("finalists").size(), 2U);
  EXPECT_FALSE(exists(run + "/large.safetensors")) << "that of another training";
  const std::string page = read_file(run + "/report.html");
  EXPECT_EQ(page.find("class=\"problems\""), std::string::npos);
  EXPECT_NE(page.find("faster on a CPU"), std::string::npos);
  const Json both = result_of(bayes("vit_mini_28", run, more), {"--trials", "9", "--finalists", "2",
                                                                "--final-training", "adjoined"});
  EXPECT_EQ(both.at("large").at("file"), run + "/large.safetensors");
  for (const char* name : {"large", "small"}) {
    const std::string file = both.at(name).at("file").get<std::string>();
    EXPECT_EQ(both.at(name).at("top1"), result_of({"evaluate", file, "--data",
                                                   "synthetic:1x28x28x10x64", "--limit-val", "16"})
                                            .at("top1"));
  }
  EXPECT_EQ(read_file(run + "/report.html").find("class=\"problems\""), std::string::npos);
  const Words found_only = {"--trials",         "9",        "--finalists", "2",
                            "--final-training", "adjoined", "--no-retrain"};
  EXPECT_EQ(result_of(bayes("vit_mini_28", run, more), found_only).at("best"), both.at("best"))
      << "the finalist that won";
}

TEST(BayesResumeTest, WhatCannotBeTrainedInFullGivesItsPlaceToTheNext) {
  const TempFolder folder;
  const std::string large = folder / "large";
  result_of({"train", "--model", "vit_mini_28", "--data", "synthetic:1x28x28x10x64", "--epochs",
             "1", "--limit-val", "16", "--device", "cpu", "--output", large});
  const std::string wild = folder / "wild";  // four steps go well, more do not
  const Words steep = {"--trials",  "2",  "--search-epochs", "1",
                       "--epochs",  "40", "--opt",           "sgd",
                       "--lr",      "1",  "--from",          large + "/model.safetensors",
                       "--halving", "0"};
  const ProgramResult failed = adjoin(bayes("vit_mini_28", wild, steep));
  EXPECT_EQ(failed.exit_code, kNumeric) << failed.err;
  for (const char* const said :
       {"trial 0 cannot be trained in full: ", "trial 1 cannot be trained in full: ",
        "nothing that was found can be trained in full"}) {
    EXPECT_TRUE(contains(failed.err, said)) << said << failed.err;
  }
  EXPECT_FALSE(exists(wild + "/small.safetensors"));
  // One that had won, and would not be trained again.
  const std::string run = folder / "run";
  const Words small = {"--trials", "3", "--search-epochs", "1", "--epochs", "1"};
  const Json first = result_of(bayes("vit_mini_28", run, small));
  const std::string bytes = read_file(run + "/small.safetensors");
  {
    const Json about = store::Study::read(run + "/study.db").about();
    store::Study study = store::Study::open(run + "/study.db", "vit_mini_28", about);
    study.set_facts(first.at("best"), {{"final_failures", {{"distillation", "a reason"}}}});
  }
  // As if it had been killed while the networks of the first were moved away.
  const std::string table = read_file(run + "/result.json");
  std::filesystem::create_directories(run + "/previous/1");
  std::filesystem::rename(run + "/result.json", run + "/previous/1/result.json");
  const Json next = result_of({"search", "--resume", "--output", run});
  EXPECT_NE(next.at("best"), first.at("best"));
  EXPECT_EQ(result_of({"cost", run + "/small.safetensors"}).at("macs"), next.at("macs"));
  EXPECT_EQ(read_file(run + "/previous/1/small.safetensors"), bytes);
  EXPECT_EQ(read_file(run + "/previous/1/result.json"), table);
}

TEST(BayesResumeTest, ATeacherThatIsThereIsNotTrainedAgain) {
  const TempFolder folder;
  const std::string run = folder / "run";
  const std::string teacher = run + "/teacher/model.safetensors";
  const Words small = {"--trials", "2", "--search-epochs", "1", "--no-retrain"};
  const Json first = result_of(bayes("vit_mini_28", run, small));
  const Words more = {"search", "--resume", "--output", run, "--trials", "3"};
  const std::string bytes = read_file(teacher);
  std::filesystem::remove(run + "/teacher/last.ckpt");
  const auto when = std::filesystem::last_write_time(teacher);
  EXPECT_EQ(result_of(more).at("trials"), 3);
  EXPECT_EQ(std::filesystem::last_write_time(teacher), when);
  // Another one in its place is refused, and left.
  const std::string other = folder / "other.safetensors";
  result_of({"extract", teacher, other, "--alpha", "1", "--order", "magnitude"});
  std::filesystem::copy_file(other, teacher, std::filesystem::copy_options::overwrite_existing);
  expect_refusal(more, kUsage, {"study.db", "teacher_weights"});
  EXPECT_EQ(read_file(teacher), read_file(other));
  // On a CPU one that is lost comes back.
  std::filesystem::remove(teacher);
  EXPECT_EQ(result_of(more).at("best"), first.at("best"));
  EXPECT_EQ(read_file(teacher), bytes);
}

/// Tensors alone.
void write_without_metadata(const std::string& from, const std::string& to) {
  const std::string bytes = read_file(from);
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  Json header = Json::parse(bytes.substr(sizeof size, size));
  header.erase("__metadata__");
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  size_t end = sizeof size + size;
  size = text.size();
  std::ofstream file(to, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&size), sizeof size);
  file << text << bytes.substr(end);
}

TEST(BayesTeacherTest, MayBeASpecOfOnesOwnOrAFileWithAName) {
  const TempFolder folder;
  std::ofstream(folder / "own.json") << R"({"name": "own", "img_size": 28, "patch_size": 7,
      "embed_dim": 32, "depth": 3, "heads": 4, "head_dim": 8, "mlp_ratio": 2})";
  const Words small = {"--trials", "2", "--search-epochs", "1", "--epochs", "1"};
  const std::string own = folder / "own";
  const Json first = result_of(bayes(folder / "own.json", own, small));
  EXPECT_EQ(first.at("architecture").at("blocks").size(), 3U);
  // Tensors alone, as other programs write them: the name says what they are.
  result_of({"train", "--model", "vit_mini_28", "--data", "synthetic:1x28x28x10x64", "--epochs",
             "1", "--limit-val", "16", "--device", "cpu", "--output", folder / "large"});
  write_without_metadata(folder / "large/model.safetensors", folder / "bare.safetensors");
  result_of(bayes("vit_mini_28", folder / "named", small),
            {"--from", folder / "bare.safetensors", "--dry-run"});
  const Json second = result_of(bayes("vit_mini_28", folder / "named", small),
                                {"--from", folder / "bare.safetensors"});
  EXPECT_EQ(second.at("large").at("file"), folder / "named/teacher/model.safetensors");
  EXPECT_EQ(second.at("large").at("top1"),
            result_of({"evaluate", folder / "large/model.safetensors", "--data",
                       "synthetic:1x28x28x10x64", "--limit-val", "16"})
                .at("top1"));
}

TEST(BayesTeacherTest, IsNotNeededWhereItWasOnceTheSearchHasItsCopy) {
  const TempFolder folder;
  const Words small = {"--trials", "2", "--search-epochs", "1", "--epochs", "1", "--no-retrain"};
  result_of({"train", "--model", "vit_mini_28", "--data", "synthetic:1x28x28x10x64", "--epochs",
             "1", "--limit-val", "16", "--device", "cpu", "--output", folder / "large"});
  const std::string file = folder / "large/model.safetensors";
  result_of(bayes("vit_mini_28", folder / "run", small), {"--from", file});
  std::filesystem::remove(file);
  std::filesystem::rename(folder / "run", folder / "moved");
  const Words again = {"search", "--resume", "--output", folder / "moved"};
  Words another = again;
  another.insert(another.end(), {"--from", folder / "another.safetensors"});
  expect_refusal(another, kBadData, {"another.safetensors: is not there", "leave --from out"});
  const ProgramResult dry = adjoin(again, {"--dry-run"});
  EXPECT_TRUE(contains(dry.err, file + ": is not there; its copy ")) << dry.err;
  EXPECT_EQ(result_of(again, {"--trials", "3"}).at("trials"), 3);
  EXPECT_EQ(
      result_of({"search", "--join", "--output", folder / "moved", "--trials", "4"}).at("trials"),
      1);
  EXPECT_GT(result_of(again, {"--retrain"}).at("small").at("top1").get<double>(), 0);
  EXPECT_NE(read_file(folder / "moved/config.yaml").find(file), std::string::npos);
}

TEST(BayesTeacherTest, MayHaveMoreOutputsThanThereAreClasses) {
  const TempFolder folder;
  const Words small = {"--trials", "1", "--search-epochs", "1",
                       "--epochs", "1", "--set",           "model.num_classes=12"};
  for (const char* training : {"distillation", "adjoined"}) {
    const std::string run = folder / training;
    result_of(bayes("vit_mini_28", run, small), {"--final-training", training});
    result_of({"evaluate", run + "/small.safetensors", "--data", "synthetic:1x28x28x12x64"});
  }
}

TEST(BayesStudyTest, IsOneThatOptunaOpens) {
  if (run_program(kPython, {"-c", "import optuna"}).exit_code != 0) {
    GTEST_SKIP() << kPython << " has no optuna (tools/install-deps --test)";
  }
  const TempFolder folder;
  const std::string run = folder / "run";
  const Json result = result_of(
      bayes("vit_mini_28", run,
            {"--no-retrain", "--norms", "pre,res-post", "--skips", "identity,circulant"}));
  const std::string script = std::string(ADJOIN_GOLDEN_DIR) + "/../../tools/check_study.py";
  const ProgramResult seen = run_program(kPython, {script, run + "/study.db"});
  ASSERT_EQ(seen.exit_code, 0) << seen.out << seen.err;
  const Json study = parse_json(seen.out, "stdout");
  EXPECT_EQ(study.at("trials"), result.at("trials"));
  EXPECT_EQ(study.at("direction"), "MAXIMIZE");
  EXPECT_EQ(study.at("states").value("COMPLETE", 0), result.at("states").at("complete"));
  EXPECT_EQ(study.at("states").value("PRUNED", 0), result.at("states").at("stopped"));
  const Json& best = study.at("best");
  EXPECT_EQ(best.at("number"), result.at("best"));
  EXPECT_EQ(best.at("value"), result.at("reward"));
  EXPECT_EQ(best.at("macs"), result.at("macs"));
  const Json& params = best.at("params");
  const auto kept = std::count(params.begin(), params.end(), Json("yes"));
  EXPECT_EQ(kept, kept_blocks(result)) << params;
  EXPECT_EQ(params.at("norm"), result.at("architecture").at("blocks").at(0).at("norm"));
  EXPECT_EQ(params.at("skips"), result.at("architecture").at("skips").size());
}

}  // namespace
}  // namespace adjoin
