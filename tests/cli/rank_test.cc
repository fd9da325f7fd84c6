// adjoin rank from end to end: scores, threads, resuming, verdicts, refusals.
#include <cmath>
#include <filesystem>
#include <fstream>

#include "cli/train_runs.h"
#include "support/python_folder.h"

namespace adjoin {
namespace {

class RankTest : public testing::Test {
 protected:
  RankTest() {
    std::string lines;
    std::string truth = "name,top1,second\n";
    for (int i = 1; i <= 6; ++i) {
      const std::string name = "net" + std::to_string(i);
      lines += Json({{"name", name},
                     {"embed_dim", 32},
                     {"depth", 2},
                     {"heads", {2, 4}},
                     {"mlp_ratio", {i, 2}},
                     {"img_size", 16},
                     {"patch_size", 4},
                     {"num_classes", 5}})
                   .dump() +
               "\n";
      truth += name + "," + std::to_string(50 + i) + "," + std::to_string(60 - i) + "\n";
    }
    folder.write("archs.jsonl", lines);
    folder.write("truth.csv", truth);
  }

  Words rank(const Words& more) const {
    Words args = {"rank", "--archs", folder / "archs.jsonl", "--batch-size", "4"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }

  /// Lines without the times.
  static Json scores(Json result) {
    for (Json& line : result.at("scores")) line.erase("seconds");
    return result.at("scores");
  }

  TempFolder folder;
};

TEST_F(RankTest, ScoresAreTheSameWithAnyNumberOfThreadsAndAfterAResume) {
  const Words all = {"--proxies", "all", "--batches", "2", "--seeds", "0,1"};
  Words one = rank(all);
  one.insert(one.end(), {"--threads", "1", "--output", folder / "run"});
  const Json first = result_of(one);
  ASSERT_EQ(first.at("scores").size(), 6U);
  EXPECT_EQ(first.at("scores")[2].at("name"), "net3");
  EXPECT_EQ(first.at("scores")[0].at("params"), first.at("scores")[0].at("params"));
  EXPECT_GT(first.at("scores")[0].at("spread").at("snip").get<double>(), 0);
  Words two = rank(all);
  two.insert(two.end(), {"--threads", "3"});
  EXPECT_EQ(scores(result_of(two)), scores(first));

  // A line that was cut, as by a crash, is computed again.
  const std::string file = folder / "run/scores.jsonl";
  const std::string whole = read_file(file);
  std::ofstream(file) << whole.substr(0, whole.find("\"net4\"") + 40);
  expect_refusal(one, kUsage, {"holds scores already", "--resume"});
  one.emplace_back("--resume");
  EXPECT_EQ(scores(result_of(one)), scores(first));
  one.insert(one.end(), {"--seed", "7"});
  expect_refusal(one, kUsage, {"was begun with", "\"seed\":7"});
}

TEST_F(RankTest, SaysWhatScoresAreWorthBesideMeasuredAccuracies) {
  const Json result = result_of(rank({"--truth", folder / "truth.csv", "--proxies", "snip"}));
  const Json& size = result.at("proxies").at("params");
  EXPECT_NEAR(size.at("spearman").get<double>(), 1,
              1e-12);  // the truth rises with the hidden units
  EXPECT_NEAR(size.at("columns").at("second").at("kendall").get<double>(), -1, 1e-12);
  EXPECT_EQ(size.at("regret_1"), 0);
  EXPECT_TRUE(size.at("partial_given_params").is_null());
  const Json& snip = result.at("proxies").at("snip");
  EXPECT_LE(snip.at("ci")[0].get<double>(), snip.at("spearman").get<double>());
  EXPECT_GT(snip.at("seconds_per_arch").get<double>(), 0);
}

TEST_F(RankTest, DrawsFromASpaceWithinLimits) {
  const Words args = {"rank",
                      "--space",
                      "alphas:vit_mini_28",
                      "--sample",
                      "5",
                      "--seed",
                      "3",
                      "--max-macs",
                      "0.6x",
                      "--data",
                      "synthetic:1x28x28x10x64",
                      "--batch-size",
                      "8"};
  const Json result = result_of(args);
  ASSERT_EQ(result.at("scores").size(), 5U);
  const auto large = result_of({"cost", "vit_mini_28"}).at("macs").get<double>();
  for (const Json& line : result.at("scores")) {
    EXPECT_LE(line.at("macs").get<double>(), 0.6 * large) << line;
    EXPECT_TRUE(line.at("grad_norm").is_number());
  }
  EXPECT_EQ(scores(result_of(args)), scores(result));
}

/// Networks of AutoFormer, drawn from a file of its own, scored again by Python torch.
TEST_F(RankTest, AnotherProgramFindsTheSameScores) {
  if (run_program(kPython, {"-c", "import torch"}).exit_code != 0) {
    GTEST_SKIP() << kPython << " has no torch (tools/install-deps --test)";
  }
  folder.write(
      "space.yaml",
      "SEARCH_SPACE: {MLP_RATIO: [1, 2], NUM_HEADS: [1, 2], DEPTH: [1, 2], EMBED_DIM: [48, "
      "64]}\n");
  const std::string script = std::string(ADJOIN_GOLDEN_DIR) + "/../../tools/check_proxies.py";
  const Words drawn = {"--space", folder / "space.yaml", "--sample", "3", "--seed", "5"};
  const Words listed = {"--archs", folder / "archs.jsonl"};
  for (const Words& which : {drawn, listed}) {
    Words args = {"-W", "ignore", script, "--adjoin", ADJOIN_BINARY, "--"};
    args.insert(args.end(), which.begin(), which.end());
    args.insert(args.end(), {"--batch-size", "4"});
    const ProgramResult result = run_program(kPython, args);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_NE(result.out.find("largest relative difference"), std::string::npos) << result.out;
  }
}

TEST_F(RankTest, ShowsEveryProxyInAPage) {
  result_of(rank({"--truth", folder / "truth.csv", "--output", folder / "judged"}));
  const std::string page = read_file(folder / "judged/report.html");
  for (const std::string part : {"Beside top1", "Beside second", "<h3>snip</h3>", "net3: 53 at"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(page.find("http"), std::string::npos) << "needs nothing from outside";
  result_of(rank({"--output", folder / "scored"}));
  EXPECT_NE(read_file(folder / "scored/report.html").find("Scores beside parameters"),
            std::string::npos);
}

TEST_F(RankTest, SaysWhatIsWrong) {
  expect_refusal({"rank"}, kUsage, {"--archs", "--space"});
  expect_refusal(rank({"--proxies", "snap"}), kUsage,
                 {"\"snap\" is no proxy", "grad_norm", "zico"});
  expect_refusal(rank({"--proxies", "zico"}), kUsage, {"zico", "--batches 2"});
  expect_refusal(rank({"--max-macs", "0.5x"}), kUsage, {"--max-macs", "a share needs"});
  expect_refusal(rank({"--max-params", "10"}), kUsage, {"no architecture is within"});
  expect_refusal({"rank", "--space", "everything"}, kUsage, {"everything", "alphas:MODEL"});
  folder.write("bad.jsonl", "{\"embed_dim\": 32, \"depth\": 1, \"heads\": 5, \"mlp_ratio\": 2}\n");
  expect_refusal({"rank", "--archs", folder / "bad.jsonl"}, kBadData,
                 {"bad.jsonl: line 1", "5 of block 0", "embed_dim 32"});
  folder.write("broken.jsonl", "\n{\"embed_dim\"\n");
  expect_refusal({"rank", "--archs", folder / "broken.jsonl"}, kBadData, {"broken.jsonl: line 2"});
  std::filesystem::create_directories(folder / "run");
  folder.write("run/config.yaml", "model: vit_mini_28\n");
  expect_refusal(rank({"--output", folder / "run"}), kUsage, {"run: holds a run"});
  folder.write("few.csv", "name,top1\nnet1,5\n");
  expect_refusal(rank({"--truth", folder / "few.csv"}), kBadData, {"few.csv", "no row for net2"});
  expect_refusal(rank({"--truth", folder / "few.csv", "--output", folder / "never"}), kBadData,
                 {"few.csv"});
  EXPECT_FALSE(std::filesystem::exists(folder / "never")) << "known before anything is scored";
  folder.write("latin.csv", "name,top\xe9\nnet1,5\n");
  expect_refusal(rank({"--truth", folder / "latin.csv"}), kBadData, {"latin.csv: line 1", "UTF-8"});
  folder.write("named.jsonl",
               R"({"name": 5, "embed_dim": 32, "depth": 1, "heads": 4, "mlp_ratio": 2})");
  expect_refusal({"rank", "--archs", folder / "named.jsonl"}, kBadData, {"line 1", "name"});
  folder.write("heads.jsonl", R"({"embed_dim": 32, "depth": 1, "heads": 1e300, "mlp_ratio": 2})");
  expect_refusal({"rank", "--archs", folder / "heads.jsonl"}, kBadData,
                 {"line 1", "block 0 has 1e+300"});
  folder.write(
      "wide.yaml",
      "SEARCH_SPACE: {MLP_RATIO: [4], NUM_HEADS: [3, 2000], DEPTH: [2], EMBED_DIM: [64]}\n");
  expect_refusal({"rank", "--space", folder / "wide.yaml"}, kBadData, {"wide.yaml", "2000"});
  folder.write("twice.csv", "name,top1\nnet1,5\nnet1,6\n");
  expect_refusal(rank({"--truth", folder / "twice.csv"}), kBadData, {"line 3", "net1"});
}

}  // namespace
}  // namespace adjoin
