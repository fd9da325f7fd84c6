// adjoin compress from end to end: files, refusals, resuming.
#include "cli/train_runs.h"

namespace adjoin {
namespace {

Words tiny(const std::string& output, const Words& more = {}) {
  Words args = {"compress",
                "--model",
                "vit_mini_28",
                "--data",
                "synthetic:1x28x28x10x64",
                "--epochs",
                "2",
                "--device",
                "cpu",
                "--output",
                output,
                "--lr",
                "1e-3",
                "--warmup-epochs",
                "0",
                "--batch-size",
                "16"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

class CompressTest : public testing::TestWithParam<const char*> {
 protected:
  Words compression(const std::string& output) const {
    Words args = small_run(GetParam(), output);
    args[0] = "compress";
    args.insert(args.end(), {"--epochs", "2", "--alpha", "2,4", "--separate-norms", "--small-ce",
                             "0.1", "--lambda", "constant"});
    return args;
  }

  /// Files that say of themselves what the run said of them.
  static void expect_files(const Json& result, const std::string& run) {
    const Json& small = result.at("small");
    ASSERT_EQ(small.size(), 2U);
    EXPECT_EQ(small[0].at("alpha"), 2);
    EXPECT_EQ(small[1].at("file"), run + "/small-4.safetensors");
    EXPECT_LT(small[1].at("macs").get<int64_t>(), small[0].at("macs").get<int64_t>());
    for (const Json& network : {result.at("large"), small[0], small[1]}) {
      const Json evaluated =
          result_of({"evaluate", network.at("file").get<std::string>(), "--data",
                     "synthetic:1x28x28x10x256", "--limit-val", "40", "--device", "cpu"});
      EXPECT_EQ(evaluated.at("top1"), network.at("top1")) << network;
      EXPECT_NEAR(evaluated.at("loss").get<double>(), network.at("loss").get<double>(), 1e-6);
      EXPECT_GT(network.at("latency_ms").get<double>(), 0);
    }
    EXPECT_EQ(result_of({"cost", small[1].at("file").get<std::string>()}).at("params"),
              small[1].at("params"));
    expect_predictions(result, run);
    EXPECT_EQ(result.at("report"), run + "/report.html");
    EXPECT_NE(read_file(run + "/report.html").find("small-4"), std::string::npos);
  }

  /// Right answers class by class come to the accuracy of the whole.
  static void expect_predictions(const Json& result, const std::string& run) {
    const Json said = read_json_file(run + "/predictions.json");
    EXPECT_EQ(said.at("samples").size(), 12U);
    for (const auto& [name, top1] : {std::pair("large", result.at("large").at("top1")),
                                     std::pair("small-2", result.at("small")[0].at("top1")),
                                     std::pair("small-4", result.at("small")[1].at("top1"))}) {
      double right = 0;
      double images = 0;
      for (size_t i = 0; i < said.at("images").size(); ++i) {
        const auto count = said.at("images")[i].get<double>();
        images += count;
        right += count * said.at("correct").at(name)[i].get<double>();
      }
      EXPECT_EQ(images, 40);
      EXPECT_NEAR(right / images, top1.get<double>(), 1e-9) << name;
    }
  }

  /// Starts or resumes a run and stops it after so many lines of its log; false when it ended
  /// first.
  bool is_stopped(const std::string& run, int64_t lines, int signal) const {
    RunningProgram program(ADJOIN_BINARY, resumed(run));
    if (!wait_until(program, [&] { return log_lines(run) >= lines; })) return false;
    program.signal(signal);
    return program.wait().exit_code == 128 + signal;
  }

  Words resumed(const std::string& run) const {
    Words args = compression(run);
    args.emplace_back("--resume");
    return args;
  }
};

TEST_P(CompressTest, FilesAreWhatTheRunSaidAndAKilledRunEndsBitIdentical) {
  const TempFolder folder;
  const std::string whole = folder / "whole";
  expect_files(result_of(compression(whole)), whole);
  for (int attempt = 0; attempt < 5; ++attempt) {
    const std::string run = folder / ("run" + std::to_string(attempt));
    if (!is_stopped(run, 5, SIGKILL) || !is_stopped(run, 11, SIGTERM)) continue;
    const ProgramResult result = adjoin(resumed(run));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_equal_tensors(whole + "/last.ckpt", run + "/last.ckpt");
    for (const char* name :
         {"/large.safetensors", "/small-2.safetensors", "/small-4.safetensors", "/summary.csv"}) {
      EXPECT_EQ(read_text_file(whole + name, size_t{1} << 26),
                read_text_file(run + name, size_t{1} << 26))
          << name;
    }
    EXPECT_EQ(log_of(whole), log_of(run));
    return;
  }
  FAIL() << "no run could be stopped in time";
}

INSTANTIATE_TEST_SUITE_P(Families, CompressTest,
                         testing::Values("vit_mini_28", "t2t_mini_28", "swin_mini_28"),
                         [](const auto& one) { return std::string(one.param); });

TEST(CompressRunTest, EndsWhenTheSmallNetworksAreNearEnough) {
  const TempFolder folder;
  const Words args = tiny(folder / "r", {"--alpha", "4", "--epochs", "6", "--lambda", "linear",
                                         "--stop-when-within", "100"});
  Json first = result_of(args);
  EXPECT_EQ(first.at("epochs"), 4);  // lambda is full from t = 1/2 on, which is the fourth
  Json again = result_of(args, {"--resume"});
  EXPECT_EQ(again.at("epochs"), 4);
  EXPECT_EQ(again.at("large").at("top1"), first.at("large").at("top1"));
}

TEST(CompressRunTest, StartsFromAModelInTheOrderOfItsImportance) {
  const TempFolder folder;
  Words train = tiny(folder / "t");
  train[0] = "train";
  ASSERT_EQ(adjoin(train).exit_code, 0);
  const std::string from = folder / "t/model.safetensors";
  for (const char* order : {"magnitude", "taylor"}) {
    const Json result =
        result_of(tiny(folder / order, {"--alpha", "2", "--from", from, "--order", order,
                                        "--order-images", "20", "--epochs", "1"}));
    EXPECT_EQ(result.at("small").size(), 1U);
  }
  expect_refusal(tiny(folder / "x", {"--alpha", "2", "--order", "taylor"}), 2, {"order", "--from"});
  expect_refusal(tiny(folder / "x", {"--alpha", "2", "--from", from, "--order", "magnitude",
                                     "--geometry", "narrow"}),
                 2, {"order", "narrow"});
}

TEST(CompressRunTest, WhatIsWrongIsSaidInASentence) {
  const TempFolder folder;
  const std::string out = folder / "r";
  expect_refusal(tiny(out), 2, {"alpha: is missing", "--keep"});
  expect_refusal(tiny(out, {"--alpha", "2", "--keep", "0.5"}), 2, {"give one of"});
  expect_refusal(tiny(out, {"--alpha", "2,2"}), 2, {"twice"});
  expect_refusal(tiny(out, {"--alpha", "3"}), 2,
                 {"alpha 3", "8 heads", "blocks.0", "legal: 1, 2, 4, 8", "--keep 0.33"});
  expect_refusal(tiny(out, {"--alphas", "1,2,3,4"}), 2, {"alpha 3", "blocks.2", "legal"});
  Words train = tiny(folder / "t", {"--epochs", "1"});
  train[0] = "train";
  ASSERT_EQ(adjoin(train).exit_code, 0);
  const std::string from = folder / "t/model.safetensors";
  expect_refusal(tiny(out, {"--alpha", "2", "--from", from, "--model", "swin_mini_28"}), 2,
                 {"vit_mini_28", "swin_mini_28"});
  expect_refusal(tiny(out, {"--alpha", "2", "--from", from, "--data", "synthetic:1x28x28x7x64"}), 3,
                 {"head.weight", "--reset-head"});
  const Words other = {"--alpha",     "2", "--from", from, "--data", "synthetic:1x28x28x7x64",
                       "--reset-head"};
  EXPECT_EQ(adjoin(tiny(out, other)).exit_code, 0);
}

TEST(CompressRunTest, GoesOnOnlyWithTheSmallNetworkItBeganWith) {
  const TempFolder folder;
  const std::string recipe = folder.write("r.yaml", "alpha: [4]\n");
  const std::string file = folder.write("a.json", "[2, 2, 2, 2]");
  const Words args = tiny(folder / "r", {"--config", recipe, "--alphas", "@" + file});
  ASSERT_EQ(adjoin(args).exit_code, 0);  // the flag, not the recipe, chooses
  EXPECT_EQ(adjoin(args, {"--resume"}).exit_code, 0);
  folder.write("a.json", "[2, 2, 2, 4]");
  Words again = args;
  again.emplace_back("--resume");
  expect_refusal(again, 3, {"last.ckpt", "other files"});
}

TEST(CompressRunTest, ADryRunCountsAllNetworks) {
  const TempFolder folder;
  const Json result = result_of(tiny(folder / "r", {"--alpha", "2,8", "--dry-run"}));
  EXPECT_EQ(result.at("small").size(), 2U);
  EXPECT_GT(result.at("estimate").at("step_seconds").get<double>(), 0);
}

}  // namespace
}  // namespace adjoin
