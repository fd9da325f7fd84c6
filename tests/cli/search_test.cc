// adjoin search from end to end: targets, baselines, resuming, refusals.
#include <fmt/format.h>

#include <map>
#include <sstream>

#include "cli/train_runs.h"

namespace adjoin {
namespace {

/// A search of a few steps.
Words tiny(const std::string& model, const std::string& data, const std::string& output,
           const Words& more = {}) {
  Words args = {"search", "--model",
                model,    "--data",
                data,     "--epochs",
                "1",      "--search-epochs",
                "1",      "--device",
                "cpu",    "--output",
                output,   "--lr",
                "1e-3",   "--batch-size",
                "16",     "--warmup-epochs",
                "0",      "--limit-val",
                "16"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

Words tiny_28(const std::string& output, const Words& more = {}) {
  return tiny("vit_mini_28", "synthetic:1x28x28x10x64", output, more);
}

double share_of_target(const Json& result, const char* what) {
  return result.at(what).get<double>() / result.at("target").at(what).get<double>();
}

class SearchTest : public testing::TestWithParam<const char*> {
 protected:
  Words search(const std::string& output, bool is_resumed) const {
    Words args = small_run(GetParam(), output);
    args[0] = "search";
    args.insert(args.end(), {"--epochs", "2", "--search-epochs", "2", "--lambda", "constant",
                             "--limit-train", "128"});
    // Each family with another kind of search.
    const std::map<std::string, Words> ways = {
        {"vit_mini_28", {"--target-macs", "0.5x"}},
        {"t2t_mini_28", {"--gamma", "1e-8", "--noise", "gumbel-frozen"}},
        {"swin_mini_28",
         {"--target-macs", "0.5x", "--target-params", "0.6x", "--noise", "gaussian"}}};
    const Words& way = ways.at(GetParam());
    args.insert(args.end(), way.begin(), way.end());
    if (is_resumed) args.emplace_back("--resume");
    return args;
  }

  /// Starts or goes on, and stops when a log has so many lines; false when it ended first.
  bool is_stopped(const std::string& run, const std::string& log, int64_t lines, int signal) const {
    RunningProgram program(ADJOIN_BINARY, search(run, true));
    if (!wait_until(program, [&] { return log_lines(log) >= lines; })) return false;
    program.signal(signal);
    return program.wait().exit_code == 128 + signal;
  }
};

TEST_P(SearchTest, KilledWhileSearchingAndWhileTrainingEndsBitIdentical) {
  const TempFolder folder;
  const std::string whole = folder / "whole";
  const Json result = result_of(search(whole, false));
  for (const auto& [what, limit] : result.at("target").items()) {
    EXPECT_LE(result.at(what).get<int64_t>(), limit.get<int64_t>());
  }
  EXPECT_EQ(result.at("macs"), result.at("small").at("macs"));
  const Json cost = result_of({"cost", whole + "/small.safetensors"});
  EXPECT_EQ(cost.at("macs"), result.at("macs"));
  EXPECT_EQ(cost.at("params"), result.at("params"));
  EXPECT_EQ(read_json_file(whole + "/architecture.json"), result.at("architecture"));
  const std::string page = read_file(whole + "/report.html");
  EXPECT_NE(page.find("How likely each share of a block is"), std::string::npos);
  for (int attempt = 0; attempt < 5; ++attempt) {
    const std::string run = folder / ("run" + std::to_string(attempt));
    if (!is_stopped(run, run + "/search", 3, SIGKILL) ||
        !is_stopped(run, run + "/search", 6, SIGTERM) || !is_stopped(run, run, 3, SIGKILL)) {
      continue;
    }
    const ProgramResult rest = adjoin(search(run, true));
    EXPECT_EQ(rest.exit_code, 0) << rest.err;
    expect_equal_tensors(whole + "/search/last.ckpt", run + "/search/last.ckpt");
    expect_equal_tensors(whole + "/last.ckpt", run + "/last.ckpt");
    for (const char* name : {"/large.safetensors", "/small.safetensors", "/architecture.json",
                             "/summary.csv", "/search/summary.csv"}) {
      EXPECT_EQ(read_file(whole + name), read_file(run + name)) << name;
    }
    EXPECT_EQ(log_of(whole), log_of(run));
    EXPECT_EQ(log_of(whole + "/search"), log_of(run + "/search"));
    return;
  }
  FAIL() << "no run could be stopped in time";
}

INSTANTIATE_TEST_SUITE_P(Families, SearchTest,
                         testing::Values("vit_mini_28", "t2t_mini_28", "swin_mini_28"),
                         [](const auto& one) { return std::string(one.param); });

TEST(SearchTargetTest, IsMetWithinOnePercentOrRefusedWithTheRange) {
  const TempFolder folder;
  const std::string data = "synthetic:3x32x32x10x24";
  for (const auto& [model, target] :
       {std::pair("vit_mini_32", 0.35), {"t2t_mini_32", 0.45}, {"swin_mini_32", 0.7}}) {
    const Json result =
        result_of(tiny(model, data, folder / model,
                       {"--no-retrain", "--target-macs", fmt::format("{}x", target)}));
    EXPECT_LE(share_of_target(result, "macs"), 1) << model;
    EXPECT_GE(share_of_target(result, "macs"), 0.99) << model;
    const auto large = result_of({"cost", model}).at("macs").get<double>();
    EXPECT_NEAR(result.at("macs").get<double>() / large, target, 0.01 * target);
    expect_refusal(tiny(model, data, folder / "never", {"--target-macs", "0.01x"}), kUsage,
                   {"--target-macs", model, "can have", "MACs"});
  }
}

TEST(SearchTargetTest, OfTwoNeitherIsExceeded) {
  const TempFolder folder;
  const Json result =
      result_of(tiny("vit_mini_32", "synthetic:3x32x32x10x24", folder / "r",
                     {"--no-retrain", "--target-macs", "0.6x", "--target-params", "0.45x"}));
  EXPECT_LE(share_of_target(result, "macs"), 1);
  EXPECT_LE(share_of_target(result, "params"), 1);
  EXPECT_GE(share_of_target(result, "params"), 0.99);
}

TEST(SearchBaselineTest, TriesNetworksWithinTheTargetAndGoesOnAfterASignal) {
  const TempFolder folder;
  const auto args = [&](const char* method, const std::string& run) {
    return tiny_28(
        run, {"--method", method, "--trials", "3", "--target-macs", "0.5x", "--log-interval", "1"});
  };
  const Json random = result_of(args("random", folder / "random"));
  EXPECT_EQ(random.at("trials"), 3);
  EXPECT_LE(share_of_target(random, "macs"), 1);
  const ProgramResult evolve = adjoin(args("evolve", folder / "evolve"));
  EXPECT_EQ(evolve.exit_code, 0) << evolve.err;
  EXPECT_NE(evolve.err.find("with 3 nothing evolves"), std::string::npos) << evolve.err;
  const Json uniform = result_of(args("uniform", folder / "uniform"));
  EXPECT_LE(share_of_target(uniform, "macs"), 1);
  EXPECT_EQ(uniform.at("alphas"), Json({2, 2, 2, 2}));

  Words resumed = args("random", folder / "again");
  resumed.emplace_back("--resume");
  RunningProgram program(ADJOIN_BINARY, resumed);
  const bool is_stopped =
      wait_until(program, [&] { return log_lines(folder / "again/search/trial-001") >= 2; });
  program.signal(SIGKILL);
  program.wait();
  ASSERT_TRUE(is_stopped);
  EXPECT_EQ(result_of(resumed).at("architecture"), random.at("architecture"));
  expect_equal_tensors(folder / "random/last.ckpt", folder / "again/last.ckpt");
}

TEST(SearchBaselineTest, BeginsNoTrialWhenTheTimeIsUp) {
  const TempFolder folder;
  const Json result =
      result_of(tiny_28(folder / "r", {"--method", "random", "--trials", "50", "--budget-minutes",
                                       "0.000001", "--target-macs", "0.5x", "--no-retrain"}));
  EXPECT_EQ(result.at("trials"), 1);
}

TEST(SearchProxyTest, JudgesNetworksWithoutTrainingThem) {
  const TempFolder folder;
  for (const std::string method : {"random", "evolve"}) {
    const Json result =
        result_of(tiny_28(folder / method, {"--method", method, "--score", "snip", "--target-macs",
                                            "0.5x", "--trials", "12"}));
    EXPECT_EQ(result.at("trials"), 12);
    EXPECT_LE(share_of_target(result, "macs"), 1);
    EXPECT_GT(share_of_target(result, "macs"), 0.99);
    EXPECT_GT(result.at("small").at("top1").get<double>(), 0)
        << "the one that was found is trained";
    std::istringstream lines(read_file(folder / method + "/scores.jsonl"));
    double most = 0;
    Json best;
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      const Json scored = Json::parse(line);
      if (scored.at("snip").get<double>() <= most) continue;
      most = scored.at("snip").get<double>();
      best = scored;
    }
    EXPECT_EQ(count, 12);
    EXPECT_EQ(best.at("alphas"), result.at("alphas"));
    const Words again = tiny_28(folder / method, {"--resume", "--method", method, "--score", "snip",
                                                  "--target-macs", "0.5x", "--trials", "12"});
    EXPECT_EQ(result_of(again).at("alphas"), result.at("alphas"));
    expect_refusal(
        tiny_28(folder / method, {"--method", method, "--score", "snip", "--target-macs", "0.5x"}),
        kUsage, {"holds a search already"});
  }
}

TEST(SearchProxyTest, TriesTheBestOfSome) {
  const TempFolder folder;
  const Words common = {"--method", "random", "--target-macs", "0.5x",
                        "--trials", "1",      "--no-retrain"};
  Words filtered = common;
  filtered.insert(filtered.end(), {"--prefilter", "params", "--prefilter-of", "30"});
  const Json all = result_of(tiny_28(folder / "all", common));
  const Json best = result_of(tiny_28(folder / "best", filtered));
  EXPECT_GE(best.at("params").get<int64_t>(), all.at("params").get<int64_t>());
  EXPECT_LE(share_of_target(best, "macs"), 1);
  expect_refusal(tiny_28(folder / "a", {"--score", "snip"}), kUsage,
                 {"score", "random and evolve"});
  expect_refusal(
      tiny_28(folder / "a", {"--method", "random", "--target-macs", "0.5x", "--score", "snap"}),
      kUsage, {"\"snap\" is no proxy", "grad_norm"});
  expect_refusal(tiny_28(folder / "a", {"--method", "random", "--target-macs", "0.5x", "--score",
                                        "snip", "--prefilter", "snip"}),
                 kUsage, {"prefilter", "--score"});
}

TEST(SearchDataTest, MayHaveOtherClassesAndTheArchitectureFitsEitherWay) {
  const TempFolder folder;
  const Json result = result_of(
      tiny_28(folder / "r", {"--search-data", "synthetic:1x28x28x4x64", "--target-macs", "0.5x"}));
  EXPECT_GE(share_of_target(result, "macs"), 0.98);
  EXPECT_LE(share_of_target(result, "macs"), 1);
  const std::string file = "@" + (folder / "r/architecture.json");
  const Json cost = result_of({"cost", "vit_mini_28", "--alphas", file});
  EXPECT_EQ(cost.at("macs"), result.at("macs"));
  const Json other =
      result_of({"cost", "vit_mini_28", "--set", "model.num_classes=3", "--alphas", file});
  EXPECT_LT(other.at("params").get<int64_t>(), cost.at("params").get<int64_t>());
  expect_refusal({"cost", "vit_mini_32", "--alphas", file}, kUsage,
                 {"architecture.json", "vit_mini_28", "4 blocks", "vit_mini_32 has 8"});
  expect_refusal({"cost", "vit_mini_28", "--set", "model.heads=4", "--alphas", file}, kUsage,
                 {"architecture.json", "blocks.0 has 8 heads", "4 and 128"});
  expect_refusal({"cost", "swin_mini_28", "--alphas", file}, kUsage, {"vit", "swin"});
}

TEST(SearchDataTest, MayHaveImagesOfAnotherSizeAndNoValidationSplit) {
  const TempFolder folder;
  const Json result = result_of(tiny_28(
      folder / "r", {"--search-data", "synthetic:3x40x40x3x32", "--no-retrain", "--seeds", "0,1"}));
  EXPECT_EQ(result.at("runs").size(), 2U);
  EXPECT_EQ(result.at("mean").at("macs"), result.at("runs")[0].at("macs"));
}

TEST(SearchFolderTest, KeepsItsConfigWhateverIsAskedOfItLater) {
  const TempFolder folder;
  const Words args = tiny_28(folder / "r", {"--target-macs", "0.5x", "--no-retrain"});
  const Json first = result_of(args);
  const std::string config = read_file(folder / "r/config.yaml");
  expect_refusal(args, kUsage, {"holds a search already", "--resume"});
  Words other = args;
  other.insert(other.end(), {"--target-macs", "0.7x", "--resume"});
  expect_refusal(other, kUsage, {"target_macs", "0.7x", "0.5x"});
  EXPECT_EQ(read_file(folder / "r/config.yaml"), config);
  Json again = result_of({"search", "--resume", "--output", folder / "r"});
  EXPECT_EQ(again.at("architecture"), first.at("architecture"));
  const std::string page = read_file(folder / "r/report.html");
  EXPECT_NE(page.find("What was found"), std::string::npos);
  EXPECT_EQ(page.find("epochs are finished"), std::string::npos);
  const Json trained = result_of({"search", "--resume", "--retrain", "--output", folder / "r"});
  EXPECT_EQ(trained.at("architecture"), first.at("architecture"));
  EXPECT_GT(trained.at("small").at("top1").get<double>(), 0);
}

TEST(SearchFolderTest, IsNotTouchedByAnotherSearchThatIsRefused) {
  const TempFolder folder;
  const std::string run = folder / "r";
  const Json first = result_of(tiny_28(run, {"--target-macs", "0.5x"}));
  const std::vector<std::string> files = {run + "/config.yaml", run + "/architecture.json",
                                          run + "/small.safetensors"};
  std::vector<std::string> before;
  for (const std::string& file : files) before.push_back(read_file(file));
  for (const char* method : {"bayes", "uniform", "random", "evolve"}) {
    expect_refusal({"search", "--resume", "--output", run, "--method", method}, kUsage,
                   {"method", method, "dan"});
  }
  expect_refusal({"train", "--resume", "--output", run}, kUsage, {run, "a run of adjoin search"});
  for (size_t i = 0; i < files.size(); ++i) EXPECT_EQ(read_file(files[i]), before[i]) << files[i];
  EXPECT_NE(access((run + "/study.db").c_str(), F_OK), 0);
  const Json again = result_of({"search", "--resume", "--output", run});
  EXPECT_EQ(again.at("architecture"), first.at("architecture"));
}

TEST(SearchErrorTest, SaysWhatIsWrong) {
  const TempFolder folder;
  const auto refused = [&](const Words& more, const Words& parts) {
    expect_refusal(tiny_28(folder / "never", more), kUsage, parts);
  };
  refused({"--candidates", "1,0"}, {"--candidates", "0"});
  refused({"--candidates=1,-2"}, {"--candidates", "-2"});
  refused({"--candidates", "2,2"}, {"--candidates", "twice"});
  refused({"--target-macs", "many"}, {"--target-macs", "many", "0.45x"});
  refused({"--target-macs", "2x"}, {"--target-macs", "above all that can be chosen"});
  refused({"--method", "random"}, {"random needs a target"});
  refused({"--method", "guess"}, {"method", "guess", "dan"});
  refused({"--grad-checkpointing"}, {"grad_checkpointing"});
  refused({"--order", "taylor"}, {"order", "--from"});
  std::ofstream(folder / "broken.json") << R"({"model": "x", "blocks": [{"name": "blocks.0"}]})";
  expect_refusal({"cost", "vit_mini_28", "--alphas", "@" + (folder / "broken.json")}, kBadData,
                 {"broken.json", "version"});
}

TEST(SearchErrorTest, ABlockWithNothingToChooseIsANote) {
  const TempFolder folder;
  const ProgramResult result =
      adjoin(tiny_28(folder / "r", {"--candidates", "1,3", "--no-retrain"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("blocks.0: 3 does not divide its 8 heads"), std::string::npos)
      << result.err;
}

TEST(SearchDryRunTest, SaysWhatIsFeasibleAndTrainsNothing) {
  const TempFolder folder;
  const ProgramResult result =
      adjoin(tiny_28(folder / "r", {"--target-macs", "0.5x", "--trials", "3", "--dry-run"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("trials: has no effect without"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("judged by"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("can have"), std::string::npos) << result.err;
  EXPECT_NE(result.out.find("one step"), std::string::npos) << result.out;
  EXPECT_NE(access((folder / "r").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace adjoin
