// Runs that are stopped at any moment and go on as if nothing had happened.
#include <filesystem>

#include "cli/train_runs.h"

namespace adjoin {
namespace {

class ResumeTest : public testing::TestWithParam<const char*> {
 protected:
  ResumeTest() {
    const ProgramResult result = adjoin(small_run(GetParam(), whole));
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }

  /// Starts or resumes the run in `run` and kills it when `is_time`; false when it ended first.
  bool kill_when(const std::function<bool(pid_t)>& is_time, int signal = SIGKILL) {
    Words args = small_run(GetParam(), run);
    args.emplace_back("--resume");
    RunningProgram program(ADJOIN_BINARY, args);
    if (!wait_until(program, [&] { return is_time(program.pid()); })) return false;
    program.signal(signal);
    const int exit_code = program.wait().exit_code;
    return exit_code == 128 + signal;
  }

  /// Stops a run several times as `stop` says, and compares its end with the undisturbed one. On a
  /// busy machine a run can be over before it is stopped: then another one is tried.
  void expect_same_end(const std::function<bool()>& stop) {
    for (int attempt = 0; attempt < 5; ++attempt) {
      run = folder / ("run" + std::to_string(attempt));
      if (!stop()) continue;
      finish();
      expect_equal_runs(whole, run);
      return;
    }
    FAIL() << "no run could be stopped in time";
  }

  void finish() {
    Words args = small_run(GetParam(), run);
    args.emplace_back("--resume");
    const ProgramResult result = adjoin(args);
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }

  TempFolder folder;
  std::string whole = folder / "whole";
  std::string run = folder / "run";
};

TEST_P(ResumeTest, KilledTwiceAndOnceWhileItWritesACheckpoint) {
  expect_same_end([&] {
    return kill_when([&](pid_t) { return log_lines(run) >= 5; }) &&
           kill_when([&](pid_t pid) { return log_lines(run) >= 8 && is_writing_a_file(pid); }) &&
           kill_when([&](pid_t) { return log_lines(run) >= 16; });
  });
}

TEST_P(ResumeTest, StoppedBySigtermAndSigintAfterTheStep) {
  expect_same_end([&] {
    return kill_when([&](pid_t) { return log_lines(run) >= 4; }, SIGTERM) &&
           kill_when([&](pid_t) { return log_lines(run) >= 12; }, SIGINT);
  });
}

INSTANTIATE_TEST_SUITE_P(Families, ResumeTest,
                         testing::Values("vit_mini_28", "t2t_mini_28", "swin_mini_28"),
                         [](const auto& one) { return std::string(one.param); });

TEST(ResumeEdgeTest, KilledBeforeItsFirstCheckpointItStartsAgain) {
  const TempFolder folder;
  const std::string whole = folder / "whole";
  const std::string run = folder / "run";
  ASSERT_EQ(adjoin(small_run("vit_mini_28", whole)).exit_code, 0);
  Words args = small_run("vit_mini_28", run);
  args.emplace_back("--resume");
  {
    RunningProgram program(ADJOIN_BINARY, args);
    ASSERT_TRUE(wait_until(program, [&] { return log_lines(run) >= 1; }));
    program.signal(SIGKILL);
    program.wait();
  }
  ASSERT_EQ(adjoin(args).exit_code, 0);
  expect_equal_runs(whole, run);
}

TEST(ResumeEdgeTest, ADamagedCheckpointIsRefusedInASentence) {
  const TempFolder folder;
  const std::string run = folder / "r";
  Words args = small_run("vit_mini_28", run);
  ASSERT_EQ(adjoin(args).exit_code, 0);
  args.emplace_back("--resume");
  const std::string good = read_text_file(run + "/last.ckpt", size_t{1} << 26);
  const auto damaged = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    ASSERT_EQ(from.size(), to.size());
    text.replace(at, from.size(), to);
    std::ofstream(run + "/last.ckpt", std::ios::binary) << text;
    const ProgramResult result = adjoin(args);
    EXPECT_EQ(result.exit_code, 3) << to << ": " << result.err;
    EXPECT_NE(result.err.find("last.ckpt"), std::string::npos) << result.err;
  };
  damaged("\\\"epoch\\\":3", "\\\"epoch\\\":9");
  damaged("\\\"epoch\\\":3", "\\\"epoch\\\":[");
  damaged("\\\"version\\\":2", "\\\"version\\\":7");
  damaged("\\\"steps_taken\\\":24", "\\\"steps_taken\\\":-4");
  damaged("\\\"train_images\\\":256", "\\\"train_images\\\":255");
  damaged("adjoin.checkpoint", "adjoin.checkpoinT");
  std::ofstream(run + "/last.ckpt", std::ios::binary) << good.substr(0, good.size() / 2);
  EXPECT_EQ(adjoin(args).exit_code, 3);
  std::ofstream(run + "/last.ckpt", std::ios::binary) << good;
  EXPECT_EQ(adjoin(args).exit_code, 0);
}

TEST(FinishedRunTest, IsReportedAgainAndNotTrainedAnew) {
  const TempFolder folder;
  Words args = small_run("vit_mini_28", folder / "r");
  Json first = result_of(args);
  const auto log = log_of(folder / "r");
  args.emplace_back("--resume");
  Json again = result_of(args);
  for (Json* json : {&first, &again}) json->erase("seconds");
  EXPECT_EQ(first, again);
  EXPECT_EQ(log_of(folder / "r"), log);
}

TEST(FinishedRunTest, GoesOnlyOnWithTheConfigItBeganWith) {
  const TempFolder folder;
  const std::string run = folder / "r";
  ASSERT_EQ(adjoin(small_run("vit_mini_28", run)).exit_code, 0);
  const ProgramResult fresh = adjoin(small_run("vit_mini_28", run));
  EXPECT_EQ(fresh.exit_code, 2);
  EXPECT_NE(fresh.err.find("holds a run already"), std::string::npos) << fresh.err;
  const ProgramResult other = adjoin({"train", "--resume", "--output", run, "--lr", "0.5"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("lr: is 0.5, but the run"), std::string::npos) << other.err;
  EXPECT_EQ(adjoin({"train", "--resume", "--output", run, "--workers", "0"}).exit_code, 0);
}

TEST(FinishedRunTest, IsNotTouchedByWhatIsRefused) {
  const TempFolder folder;
  const std::string run = folder / "r";
  ASSERT_EQ(adjoin(small_run("vit_mini_28", run)).exit_code, 0);
  const std::string config = read_file(run + "/config.yaml");
  const ProgramResult data =
      adjoin({"train", "--resume", "--output", run, "--data", "synthetic:1x28x28x10x64"});
  EXPECT_EQ(data.exit_code, 3);
  EXPECT_NE(data.err.find("made from other files: train_images was "), std::string::npos)
      << data.err;
  for (const Words& other : std::vector<Words>{{"search"}, {"compress", "--alpha", "2"}}) {
    const ProgramResult result = adjoin(other, {"--resume", "--output", run});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find(": is a run of adjoin train; "), std::string::npos) << result.err;
  }
  EXPECT_EQ(read_file(run + "/config.yaml"), config);
  EXPECT_FALSE(std::filesystem::exists(run + "/search"));
  EXPECT_EQ(adjoin({"train", "--resume", "--output", run}).exit_code, 0);
}

}  // namespace
}  // namespace adjoin
