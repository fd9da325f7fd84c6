// adjoin train and evaluate from end to end: results, refusals, failures.
#include <sys/stat.h>

#include "cli/train_runs.h"

namespace adjoin {
namespace {

/// Runs with these words more, and expects an exit code and words on standard error.
void expect_failure(const Words& args, int exit_code, const Words& parts) {
  const ProgramResult result = adjoin(args);
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  for (const std::string& part : parts) {
    EXPECT_NE(result.err.find(part), std::string::npos) << part << " is not in: " << result.err;
  }
}

Words tiny(const std::string& output, const Words& more = {}) {
  Words args = {"train",    "--model",  "vit_mini_28",  "--data", "synthetic:1x28x28x10x64",
                "--epochs", "1",        "--batch-size", "16",     "--device",
                "cpu",      "--output", output};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(TrainTest, LeavesAWholeRunFolderAndAModelThatEvaluatesToWhatItSaid) {
  const TempFolder folder;
  const std::string run = folder / "r";
  const Json result = result_of(small_run("vit_mini_28", run));
  EXPECT_EQ(result.at("run"), run);
  EXPECT_EQ(result.at("images"), 40);
  EXPECT_GT(result.at("params").get<int64_t>(), 0);
  EXPECT_EQ(read_text_file(run + "/summary.csv", 10000)
                .rfind("epoch,train_loss,eval_loss,eval_top1,eval_top5,lr\n0,", 0),
            0U);
  const std::string config = read_text_file(run + "/config.yaml", 10000);
  EXPECT_NE(config.find("drop_path: 0.1\n"), std::string::npos) << config;
  const Json evaluated =
      result_of({"evaluate", run + "/model.safetensors", "--data", "synthetic:1x28x28x10x256",
                 "--limit-val", "40", "--device", "cpu", "--batch-size", "7"});
  EXPECT_EQ(evaluated.at("images"), 40);
  EXPECT_EQ(evaluated.at("top1"), result.at("top1"));
  EXPECT_NEAR(evaluated.at("loss").get<double>(), result.at("loss").get<double>(), 1e-6);
}

TEST(TrainTest, LearnsWhatTheImagesTeach) {
  const TempFolder folder;
  const Json result = result_of(tiny(folder / "r", {"--data", "synthetic:1x28x28x4x512", "--epochs",
                                                    "8", "--lr", "0.003", "--warmup-epochs", "1"}));
  EXPECT_GT(result.at("top1").get<double>(), 60);  // 25 by chance
}

TEST(TrainTest, ARecipeIsReadAndFlagsWinOverIt) {
  const TempFolder folder;
  const std::string recipe = folder.write(
      "r.yaml", "model: vit_mini_28\ndata: synthetic:1x28x28x10x64\nepochs: 9\nbatch_size: 16\n");
  ASSERT_EQ(adjoin({"train", "--config", recipe, "--epochs", "1", "--device", "cpu", "--output",
                    folder / "r"})
                .exit_code,
            0);
  const std::string config = read_text_file(folder / "r/config.yaml", 10000);
  EXPECT_NE(config.find("epochs: 1\n"), std::string::npos) << config;
  EXPECT_NE(config.find("batch_size: 16\n"), std::string::npos) << config;
}

TEST(TrainTest, SeveralSeedsAreSeveralRuns) {
  const TempFolder folder;
  const Json result = result_of(tiny(folder / "r", {"--seeds", "0,3"}));
  ASSERT_EQ(result.at("runs").size(), 2U);
  EXPECT_EQ(result.at("runs")[1].at("run"), folder / "r/seed-3");
  const double mean = (result.at("runs")[0].at("loss").get<double>() +
                       result.at("runs")[1].at("loss").get<double>()) /
                      2;
  EXPECT_DOUBLE_EQ(result.at("mean").at("loss").get<double>(), mean);
}

TEST(TrainTest, ADryRunSaysWhatIsNeededAndWritesNothing) {
  const TempFolder folder;
  const Json result = result_of(tiny(folder / "r", {"--dry-run", "--epochs", "7"}));
  const Json& estimate = result.at("estimate");
  EXPECT_EQ(estimate.at("steps_per_epoch"), 4);
  EXPECT_GT(estimate.at("seconds").get<double>(), 0);
  EXPECT_GT(estimate.at("state_bytes").get<int64_t>(),
            4 * result.at("weight_bytes").get<int64_t>());
  struct stat status {};
  EXPECT_NE(stat((folder / "r").c_str(), &status), 0);
}

/// Memory of a process that no file backs and the libraries it has touched, in pages.
int64_t resident_pages(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  int64_t size = 0;
  int64_t resident = 0;
  file >> size >> resident;
  return resident;
}

TEST(TrainTest, MemoryStaysFlatOverTheEpochs) {
  const TempFolder folder;
  const std::string run = folder / "r";
  Words args = small_run("vit_mini_28", run);
  args.insert(args.end(),
              {"--epochs", "5", "--aa", "rand-m5", "--data", "synthetic:1x28x28x10x1024"});
  RunningProgram program(ADJOIN_BINARY, args);
  const auto at_epoch = [&](int64_t epoch) {
    const int64_t lines = (epoch + 1) * (32 + 1);
    return wait_until(program, [&] { return log_lines(run) >= lines; })
               ? resident_pages(program.pid())
               : 0;
  };
  const int64_t early = at_epoch(0);
  const int64_t late = at_epoch(3);
  ASSERT_GT(early, 0);
  EXPECT_LT(late, early * 105 / 100) << "grew from " << early << " pages";
  EXPECT_EQ(program.wait().exit_code, 0);
}

TEST(TrainTest, ATeacherIsAModelFile) {
  const TempFolder folder;
  ASSERT_EQ(adjoin(tiny(folder / "teacher")).exit_code, 0);
  for (const char* kind : {"soft", "hard", "mse"}) {
    const ProgramResult result =
        adjoin(tiny(folder / kind,
                    {"--teacher", folder / "teacher/model.safetensors", "--distillation", kind}));
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

TEST(TrainTest, StartsFromAFileWithAnotherNumberOfClasses) {
  const TempFolder folder;
  ASSERT_EQ(adjoin(tiny(folder / "a")).exit_code, 0);
  const ProgramResult result = adjoin(tiny(
      folder / "b", {"--from", folder / "a/best.safetensors", "--data", "synthetic:1x28x28x4x64"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("head"), std::string::npos) << "nobody said that the head is new";
}

TEST(TrainFailureTest, ALossThatIsNotFiniteIsExitFourAndTheCheckpointStays) {
  const TempFolder folder;
  const std::string run = folder / "r";
  const Words args = tiny(run, {"--lr", "1e9", "--warmup-epochs", "1", "--warmup-lr", "0",
                                "--epochs", "3", "--checkpoint-interval", "1"});
  expect_failure(args, 4, {"step ", "NaN or infinite"});
  const std::string before = read_text_file(run + "/last.ckpt", size_t{1} << 26);
  Words again = args;
  again.emplace_back("--resume");
  expect_failure(again, 4, {"step "});
  EXPECT_EQ(read_text_file(run + "/last.ckpt", size_t{1} << 26), before);
}

TEST(TrainFailureTest, BadWordsGetASentenceAndTheRightCode) {
  const TempFolder folder;
  const std::string run = folder / "r";
  expect_failure({"train"}, 2, {"model: is missing"});
  expect_failure({"train", "--model", "vit_mini_28"}, 2, {"data: is missing"});
  expect_failure(tiny(run, {"--data", "nothing/here"}), 3, {"nothing/here"});
  expect_failure(tiny(run, {"--model", "vit_mini_29"}), 2, {"vit_mini_28"});
  expect_failure(tiny(run, {"--sched", "cosin"}), 2, {"sched", "cosine"});
  expect_failure(tiny(run, {"--aa", "rand-q9"}), 2, {"aa"});
  expect_failure(tiny(run, {"--set", "model.num_classes=4"}), 2, {"num_classes: is 4", "10"});
  expect_failure(tiny(run, {"--device", "tpu"}), 2, {"tpu"});
  expect_failure(tiny(run, {"--resume", "--lr", "fast"}), 2, {"--lr"});
  expect_failure({"train", "--resume"}, 2, {"--output"});
  expect_failure(tiny(run, {"--config", "no.yaml"}), 3, {"no.yaml"});
}

TEST(TrainFailureTest, AFolderThatCannotBeWrittenIsAClearError) {
  expect_failure(tiny("/proc/adjoin/r"), 3, {"/proc/adjoin"});
}

TEST(TrainFailureTest, AFullDiskLeavesTheCheckpointBefore) {
  const TempFolder folder;
  const std::string run = folder / "r";
  Words args = small_run("vit_mini_28", run);
  args.insert(args.end(), {"--epochs", "20"});  // long enough to be stopped on a busy machine
  {
    RunningProgram program(ADJOIN_BINARY, args);
    ASSERT_TRUE(wait_until(program, [&] { return log_lines(run) >= 5; }));
    program.signal(SIGTERM);
    ASSERT_EQ(program.wait().exit_code, 128 + SIGTERM);
  }
  const std::string before = read_text_file(run + "/last.ckpt", size_t{1} << 26);
  std::string command = "ulimit -f 100; exec " ADJOIN_BINARY;  // files of at most 100 KB
  for (const std::string& arg : args) command += " " + arg;
  const ProgramResult result = run_program("/bin/bash", {"-c", command + " --resume"});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_NE(result.err.find("cannot be written"), std::string::npos) << result.err;
  EXPECT_EQ(read_text_file(run + "/last.ckpt", size_t{1} << 26), before);
}

/// A folder of images, one of them broken.
class BrokenImageTest : public testing::Test {
 protected:
  BrokenImageTest() {
    const std::string script =
        "import os, sys\nfrom PIL import Image\nroot = sys.argv[1]\n"
        "for split, count in (('train', 40), ('val', 8)):\n"
        "  for label in ('cat', 'dog'):\n"
        "    os.makedirs(f'{root}/{split}/{label}')\n"
        "    for i in range(count):\n"
        "      Image.new('RGB', (40, 36), (i, 90, "
        "200)).save(f'{root}/{split}/{label}/{i:03}.png')\n"
        "open(f'{root}/train/cat/007.png', 'wb').write(b'not an image')\n";
    const ProgramResult made = run_program("/usr/bin/python3", {"-c", script, folder.path()});
    if (made.exit_code != 0) reason = made.err;
  }

  Words args(const std::string& output, const Words& more = {}) const {
    Words words = {"train",    "--model",  "vit_mini_32",  "--data", folder.path(),
                   "--epochs", "2",        "--batch-size", "16",     "--device",
                   "cpu",      "--output", output,         "--set",  "model.depth=1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  TempFolder folder;
  std::string reason;
};

TEST_F(BrokenImageTest, IsNamedCountedAndLeftOutUpToALimit) {
  if (!reason.empty()) GTEST_SKIP() << "no images could be written: " << reason;
  expect_failure(args(folder / "r"), 3, {"007.png", "1 of 80 images", "--max-bad-images"});
  for (const Words& more : {Words{}, Words{"--aa", "rand-m5"}}) {
    const std::string run = folder / (more.empty() ? "s" : "t");
    Words words = args(run, {"--max-bad-images", "0.05"});
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult result = adjoin(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find("007.png"), std::string::npos) << result.err;
    int64_t named = 0;
    for (const Json& line : log_of(run)) named += line.at("kind") == "unreadable" ? 1 : 0;
    EXPECT_EQ(named, 1);
  }
  const Json model =
      result_of({"evaluate", folder / "s/model.safetensors", "--data", folder.path()});
  EXPECT_EQ(model.at("images"), 16);
}

}  // namespace
}  // namespace adjoin
