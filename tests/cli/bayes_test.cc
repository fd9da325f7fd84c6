// adjoin search --method bayes from end to end: families, rewards, processes, kills, refusals.
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "adjoin/core/place.h"
#include "cli/train_runs.h"
#include "support/python_folder.h"

namespace adjoin {
namespace {

Words bayes(const std::string& model, const std::string& output, const Words& more = {}) {
  Words args = {"search",
                "--method",
                "bayes",
                "--model",
                model,
                "--data",
                "synthetic:1x28x28x10x64",
                "--epochs",
                "2",
                "--search-epochs",
                "3",
                "--device",
                "cpu",
                "--output",
                output,
                "--lr",
                "1e-3",
                "--batch-size",
                "16",
                "--warmup-epochs",
                "0",
                "--limit-val",
                "16",
                "--target-macs",
                "0.5x",
                "--trials",
                "5",
                "--proposals",
                "2",
                "--proposer",
                "features",
                "--log-interval",
                "1"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

int64_t kept_blocks(const Json& result) {
  int64_t kept = 0;
  for (const Json& block : result.at("architecture").at("blocks")) kept += block.at("keep") ? 1 : 0;
  return kept;
}

bool exists(const std::string& path) { return place_at(path) != Place::kNothing; }

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
  EXPECT_TRUE(exists(run + "/small.onnx"));
  EXPECT_FALSE(exists(run + "/search/trial-000/last.ckpt")) << "weights of trials are not kept";
  const std::string page = read_file(run + "/report.html");
  EXPECT_NE(page.find("trial"), std::string::npos);
  const Json again = result_of({"search", "--resume", "--output", run});
  EXPECT_EQ(again.at("architecture"), result.at("architecture"));
  EXPECT_EQ(again.at("small").at("top1"), result.at("small").at("top1"));
}

INSTANTIATE_TEST_SUITE_P(Families, BayesTest,
                         testing::Values("vit_mini_28", "t2t_mini_28", "swin_mini_28"),
                         [](const auto& one) { return std::string(one.param); });

/// Lines of all logs of a search.
int64_t all_log_lines(const std::string& run) {
  int64_t sum = log_lines(run) + log_lines(run + "/teacher");
  for (int i = 0; i < 8; ++i) sum += log_lines(fmt::format("{}/search/trial-{:03}", run, i));
  return sum;
}

TEST(BayesCrashTest, KilledTenTimesInARowItEndsAsIfNothingHadHappened) {
  const TempFolder folder;
  const Words more = {"--trials", "8", "--resume", "--halving", "0"};
  const std::string whole = folder / "whole";
  const Json wanted = result_of(bayes("vit_mini_28", whole, more));
  const std::string run = folder / "run";
  int kills = 0;
  while (kills < 10) {
    const int64_t before = all_log_lines(run);
    RunningProgram program(ADJOIN_BINARY, bayes("vit_mini_28", run, more));
    // An epoch is done then, and some steps of another; or what comes between two.
    const int64_t enough = before + 7 + kills % 3;
    ASSERT_TRUE(wait_until(program, [&] { return all_log_lines(run) >= enough; }))
        << "after " << kills << " kills: " << program.wait().err;
    if (kills % 2 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(4 * kills));
    program.signal(SIGKILL);
    program.wait();
    ++kills;
  }
  const Json result = result_of(bayes("vit_mini_28", run, more));
  EXPECT_EQ(result.at("trials"), 8);
  EXPECT_GT(result.at("attempts").get<int64_t>(), 8) << "some died and were begun again";
  for (const char* key : {"architecture", "states", "best", "reward", "search_top1"}) {
    EXPECT_EQ(result.at(key), wanted.at(key)) << key;
  }
  expect_equal_tensors(whole + "/small.safetensors", run + "/small.safetensors");
}

TEST(BayesProcessesTest, ShareTheTrialsAndOthersMayJoin) {
  const TempFolder folder;
  const std::string run = folder / "run";
  expect_refused(kUsage, {"no study", "join"},
                 {"search", "--join", "--method", "bayes", "--model", "vit_mini_28", "--data",
                  "synthetic:1x28x28x10x64", "--output", run});
  const Json result =
      result_of(bayes("vit_mini_28", run, {"--jobs", "3", "--trials", "9", "--no-retrain"}));
  EXPECT_EQ(result.at("trials"), 9);
  EXPECT_EQ(result.at("states").at("open"), 0);
  EXPECT_EQ(result.at("attempts"), 9) << "no trial was begun twice";
  result_of({"search", "--resume", "--output", run, "--trials", "10", "--jobs", "8"});
  EXPECT_NE(access((run + "/search/worker-3.log").c_str(), F_OK), 0) << "one trial was left";
  expect_refused(kUsage, {"--jobs", "--join"},
                 {"search", "--join", "--output", run, "--jobs", "2"});
  const ProgramResult joined =
      adjoin({"search", "--join", "--output", run, "--trials", "12", "--json"});
  EXPECT_EQ(Json::parse(joined.out).at("trials"), 2);
  EXPECT_NE(joined.err.find("result.json is of before; --resume"), std::string::npos) << joined.err;
}

/// The processes that a program started.
std::vector<pid_t> children_of(pid_t program) {
  std::ifstream list(fmt::format("/proc/{0}/task/{0}/children", program));
  return {std::istream_iterator<pid_t>(list), {}};
}

TEST(BayesProcessesTest, AWorkerThatIsKilledLeavesItsTrialToTheOthers) {
  const TempFolder folder;
  const std::string run = folder / "run";
  RunningProgram program(
      ADJOIN_BINARY, bayes("vit_mini_28", run,
                           {"--jobs", "2", "--trials", "4", "--search-epochs", "30", "--halving",
                            "0", "--no-retrain", "--json", "--checkpoint-interval", "1"}));
  const auto is_at_two = [&] {
    return log_lines(run + "/search/trial-000") > 8 && log_lines(run + "/search/trial-001") > 8;
  };
  ASSERT_TRUE(wait_until(program, is_at_two)) << program.wait().err;
  const std::vector<pid_t> workers = children_of(program.pid());
  ASSERT_EQ(workers.size(), 1U);
  kill(workers[0], SIGKILL);
  const ProgramResult result = program.wait();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("worker 1 ended with 137"), std::string::npos) << result.err;
  const Json json = parse_json(result.out, "stdout");
  EXPECT_EQ(json.at("states").at("complete"), 4);
  EXPECT_EQ(json.at("attempts"), 5);
}

TEST(BayesProcessesTest, StopTogetherAndGoOnTogether) {
  const TempFolder folder;
  const std::string run = folder / "run";
  const Words args = bayes("vit_mini_28", run,
                           {"--jobs", "2", "--search-epochs", "30", "--halving", "0", "--trials",
                            "4", "--no-retrain", "--resume"});
  {
    RunningProgram program(ADJOIN_BINARY, args);
    ASSERT_TRUE(wait_until(program, [&] { return log_lines(run + "/search/trial-001") > 8; }));
    const std::vector<pid_t> workers = children_of(program.pid());
    program.signal(SIGTERM);
    EXPECT_EQ(program.wait().exit_code, 143);
    for (const pid_t worker : workers) EXPECT_NE(kill(worker, 0), 0) << "still runs";
  }
  const Json result = result_of(args);
  EXPECT_EQ(result.at("states").at("complete"), 4);
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
  }
  EXPECT_GT(winners.size(), 1U) << "the test needs another seed";
  result_of(bayes("vit_mini_28", run, more), {"--trials", "9", "--final-training", "adjoined"});
  EXPECT_TRUE(exists(run + "/large.safetensors"));
  const Json last =
      result_of(bayes("vit_mini_28", run, more),
                {"--trials", "9", "--finalists", "2", "--final-training", "distillation"});
  EXPECT_EQ(last.at("finalists").size(), 2U);
  const std::string page = read_file(run + "/report.html");
  EXPECT_EQ(page.find("class=\"problems\""), std::string::npos);
  EXPECT_NE(page.find("faster on a CPU"), std::string::npos);
}

TEST(BayesResumeTest, ATrialOfALostStudyIsBegunAnew) {
  const TempFolder folder;
  const std::string run = folder / "run";
  const Words args = bayes("vit_mini_28", run,
                           {"--trials", "2", "--search-epochs", "30", "--halving", "0", "--resume",
                            "--no-retrain", "--checkpoint-interval", "1"});
  {
    RunningProgram program(ADJOIN_BINARY, args);
    ASSERT_TRUE(wait_until(program, [&] { return log_lines(run + "/search/trial-000") > 8; }));
    program.signal(SIGKILL);
    program.wait();
  }
  for (const char* end : {"", "-wal", "-shm"}) {
    std::filesystem::remove(run + "/study.db" + end);
  }
  Words other = args;  // trial 0 is another network then
  other.insert(other.end(), {"--target-macs", "0.2x"});
  std::filesystem::remove_all(run + "/teacher");
  EXPECT_EQ(result_of(other).at("states").at("complete"), 2);
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
  const Json second = result_of(bayes("vit_mini_28", folder / "named", small),
                                {"--from", folder / "bare.safetensors"});
  EXPECT_EQ(second.at("large").at("file"), folder / "named/teacher/model.safetensors");
  EXPECT_EQ(second.at("large").at("top1"),
            result_of({"evaluate", folder / "large/model.safetensors", "--data",
                       "synthetic:1x28x28x10x64", "--limit-val", "16"})
                .at("top1"));
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
      bayes("vit_mini_28", folder / "never", {"--finalists", "2", "--final-training", "adjoined"}),
      kUsage, {"finalists", "adjoined"});
  expect_refusal(bayes("vit_mini_28", folder / "never", {"--small-ce", "0.7"}), kUsage,
                 {"small_ce", "--final-training adjoined"});
  expect_refusal(bayes("vit_mini_28", folder / "never", {"--tau-start", "3"}), kUsage,
                 {"tau_start", "bayes"});
  expect_refusal(bayes("vit_mini_28", folder / "never", {"--skips", "none,identity"}), kUsage,
                 {"skips", "alone"});
  // A study that was damaged is left as it is.
  const std::string file = run + "/study.db";
  std::string bytes = read_file(file);
  ASSERT_GT(bytes.size(), 8192U);
  for (size_t i = 4096; i < 8192; ++i) bytes[i] = static_cast<char>(i * 37);
  std::ofstream(file, std::ios::binary) << bytes;
  expect_refusal(again({}), kBadData, {"study.db", "damaged"});
  EXPECT_EQ(read_file(file), bytes);
  std::ofstream(file, std::ios::binary) << "not a study";
  expect_refusal(again({}), kBadData, {"study.db", "not a study"});
  EXPECT_EQ(read_file(file), "not a study");
}

TEST(BayesDryRunTest, SaysWhatComesFirstAndTrainsNothing) {
  const TempFolder folder;
  const ProgramResult result = adjoin(bayes("vit_mini_28", folder / "r", {"--dry-run"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("teacher"), std::string::npos) << result.err;
  EXPECT_NE(result.out.find("one step"), std::string::npos) << result.out;
  EXPECT_FALSE(exists(folder / "r"));
}

}  // namespace
}  // namespace adjoin
