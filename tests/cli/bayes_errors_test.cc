// adjoin search --method bayes: what is refused, and what a dry run says.
#include <filesystem>
#include <fstream>

#include "cli/bayes_runs.h"
#include "support/python_folder.h"

namespace adjoin {
namespace {

TEST(BayesErrorTest, SaysWhatIsWrongAndTouchesNoStudyOfSomethingElse) {
  const TempFolder folder;
  const std::string run = folder / "run";
  const Words small = {"--trials", "1", "--search-epochs", "1", "--no-retrain"};
  result_of(bayes("vit_mini_28", run, small));
  const auto again = [&](Words more) {
    Words args = small;
    args.emplace_back("--resume");
    args.insert(args.end(), more.begin(), more.end());
    return bayes("vit_mini_28", run, args);
  };
  expect_refusal(bayes("vit_mini_28", run), kUsage, {"holds a search already", "--resume"});
  expect_refusal(again({"--skips", "none"}), kUsage, {"skips", "identity", "none"});
  expect_refusal(again({"--set", "model.depth=3"}), kUsage, {"set", "depth=3"});
  expect_refusal(again({"--target-macs", "0.2x"}), kUsage, {"target_macs", "0.5x", "0.2x"});
  // The same with a teacher that is given.
  const std::string taught = folder / "taught";
  const auto with_teacher = [&](const std::string& file, Words more) {
    more.insert(more.end(), {"--from", file, "--resume"});
    more.insert(more.end(), small.begin(), small.end());
    return bayes("vit_mini_28", taught, more);
  };
  const std::string teacher = run + "/teacher/model.safetensors";
  result_of(with_teacher(teacher, {}));
  expect_refusal(with_teacher(teacher, {"--skips", "none"}), kUsage,
                 {"study.db", "holds a study with", "skips", "identity", "none"});
  expect_refusal(with_teacher(teacher, {"--data", "synthetic:1x28x28x10x128"}), kUsage,
                 {"study.db", "images", "to learn from"});
  const ProgramResult older =
      run_program(kPython, {"-c",
                            "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); "
                            "db.execute(\"DELETE FROM study_user_attributes WHERE key = "
                            "'about.images'\"); db.commit()",
                            taught + "/study.db"});
  ASSERT_EQ(older.exit_code, 0) << older.err;
  result_of(with_teacher(teacher, {}));
  const std::string other = taught + "/other.safetensors";
  result_of({"extract", teacher, other, "--alpha", "1", "--order", "magnitude"});
  expect_refusal(with_teacher(other, {}), kUsage, {"study.db", "teacher_weights", "fnv1a"});
  expect_refusal(bayes("vit_mini_28", folder / "never", {"--target-macs", "0.01x"}), kUsage,
                 {"--target-macs", "no network can be that small", "MACs"});
  expect_refusal(bayes("vit_mini_28", folder / "never", {"--candidates", "1,2"}), kUsage,
                 {"candidates", "bayes"});
  expect_refusal({"search", "--join", "--output", run, "--method", "dan", "--model", "vit_mini_28",
                  "--data", "synthetic:1x28x28x10x64"},
                 kUsage, {"--join"});
  expect_refusal(bayes("vit_mini_28", folder / "wild", {"--lr", "1e9", "--warmup-epochs", "0"}),
                 kNumeric, {"while the teacher was trained: "});
  for (const Words& wrong : std::vector<Words>{
           {"--target-macs", "1x"}, {"--target-params", "1.5x"}, {"--target-bytes", "1G"}}) {
    expect_refusal(bayes("vit_mini_28", folder / "never", wrong), kUsage,
                   {wrong[0], "is not below", "of the large network"});
  }
  expect_refusal(bayes("vit_mini_28", folder / "never", {"--reset-head"}), kUsage, {"reset_head"});
  expect_refusal(
      bayes("vit_mini_28", folder / "never", {"--reward-by", "tse", "--distillation-alpha", "1"}),
      kUsage, {"reward_by", "no loss"});
  expect_refusal(bayes("vit_mini_28", folder / "never", {"--tau-start", "3"}), kUsage,
                 {"tau_start", "bayes"});
  expect_refusal(bayes("vit_mini_28", folder / "never", {"--skips", "none,identity"}), kUsage,
                 {"skips", "alone"});
  expect_refusal({"search", "--output", run, "--seeds", "0,0"}, kUsage, {"--seeds", "0 twice"});
  expect_refusal({"search", "--output", run, "--seeds", "0,1", "--seed", "5"}, kUsage,
                 {"--seed", "leave one out"});
  std::filesystem::remove_all(run + "/search");
  std::ofstream(run + "/search") << "x";
  expect_refusal(again({}), kBadData, {run + "/search", "is a file"});
  std::filesystem::remove(run + "/search");
  const std::string config = read_file(run + "/config.yaml");
  std::ofstream(run + "/config.yaml") << "";
  expect_refusal(again({}), kBadData, {run + "/config.yaml", "is empty"});
  std::filesystem::remove(run + "/config.yaml");
  expect_refusal({"search", "--join", "--output", run}, kBadData, {run + "/config.yaml"});
  std::ofstream(run + "/config.yaml") << config;
  // A study that was damaged is left as it is.
  const std::string file = run + "/study.db";
  std::string bytes = read_file(file);
  ASSERT_GT(bytes.size(), 8192U);
  for (size_t i = 4096; i < 8192; ++i) bytes[i] = static_cast<char>(i * 37);
  std::ofstream(file, std::ios::binary) << bytes;
  expect_refusal(again({}), kBadData, {"study.db", "damaged"});
  EXPECT_EQ(read_file(file), bytes);
  EXPECT_NE(adjoin({"report", run}).err.find("The study cannot be read"), std::string::npos);
  std::ofstream(file, std::ios::binary) << "not a study";
  expect_refusal(again({}), kBadData, {"study.db", "not a study"});
  EXPECT_EQ(read_file(file), "not a study");
}

TEST(BayesErrorTest, TheFolderOfATeacherIsThatOfASearch) {
  const TempFolder folder;
  const std::string run = folder / "run";
  const Words args = bayes("vit_mini_28", run, {"--epochs", "50"});
  RunningProgram program(ADJOIN_BINARY, args);
  ASSERT_TRUE(wait_until(program, [&] { return log_lines(run + "/teacher") > 2; }))
      << program.wait().err;
  program.signal(SIGKILL);
  program.wait();
  EXPECT_FALSE(exists(run + "/study.db"));
  expect_refusal(args, kUsage, {"holds a search already", "--resume"});
  expect_refusal({"search", "--resume", "--output", run, "--method", "uniform"}, kUsage,
                 {"method", "uniform", "bayes"});
  // A study of something else is seen before hours of training.
  std::ofstream(run + "/study.db") << "not a study";
  const int64_t lines = log_lines(run + "/teacher");
  expect_refusal({"search", "--resume", "--output", run}, kBadData, {"study.db", "not a study"});
  EXPECT_EQ(log_lines(run + "/teacher"), lines);
}

TEST(BayesDryRunTest, NamesWhatHasNoEffect) {
  const TempFolder folder;
  const ProgramResult result = adjoin(bayes("vit_mini_28", folder / "r",
                                            {"--dry-run", "--small-ce", "0.7", "--distillation-tau",
                                             "2", "--tse-weight", "0.5", "--order-images", "9"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* note : {"small_ce: has no effect without --final-training adjoined",
                           "distillation_tau: has no effect without --distillation soft",
                           "tse_weight: has no effect without --reward-by tse-ema",
                           "order_images: has no effect without --order taylor"}) {
    EXPECT_NE(result.err.find(note), std::string::npos) << note << result.err;
  }
}

TEST(BayesDryRunTest, SaysWhatComesFirstAndTrainsNothing) {
  const TempFolder folder;
  const ProgramResult result = adjoin(bayes("vit_mini_28", folder / "r", {"--dry-run"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("teacher"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("halving: "), std::string::npos) << result.err;
  const ProgramResult brief =
      adjoin(bayes("vit_mini_28", folder / "r", {"--dry-run", "--search-epochs", "2"}));
  EXPECT_NE(brief.err.find("halving: is 3, so no trial of 2 epochs is stopped early"),
            std::string::npos)
      << brief.err;
  EXPECT_NE(result.out.find("one step"), std::string::npos) << result.out;
  EXPECT_FALSE(exists(folder / "r"));
}

}  // namespace
}  // namespace adjoin
