// adjoin search --method bayes by several processes, some of which are killed.
#include <fmt/format.h>

#include <filesystem>
#include <iterator>

#include "adjoin/core/threads.h"
#include "adjoin/store/study.h"
#include "cli/bayes_runs.h"
#include "support/python_folder.h"

namespace adjoin {
namespace {

/// Lines of all logs of a search.
int64_t all_log_lines(const std::string& run) {
  int64_t sum = log_lines(run) + log_lines(run + "/teacher");
  for (int i = 0; i < 8; ++i) sum += log_lines(fmt::format("{}/search/trial-{:03}", run, i));
  return sum;
}

TEST(BayesCrashTest, KilledTenTimesInARowItEndsAsIfNothingHadHappened) {
  const TempFolder folder;
  // Some are stopped early; what is proposed is learned.
  const Words more = {"--trials",        "8", "--resume",   "--halving", "2",
                      "--search-epochs", "4", "--proposer", "embedding"};
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
  EXPECT_GT(result.at("states").at("stopped").get<int64_t>(), 0) << "the test needs another seed";
  for (const char* key : {"architecture", "states", "best", "reward", "search_top1"}) {
    EXPECT_EQ(result.at(key), wanted.at(key)) << key;
  }
  expect_equal_tensors(whole + "/small.safetensors", run + "/small.safetensors");
}

std::vector<store::StoredTrial> trials_of(const std::string& run) {
  return store::Study::read(run + "/study.db").trials();
}

TEST(BayesProcessesTest, LearnFromTheFirstTrialsThatEnd) {
  const TempFolder folder;
  const std::string run = folder / "run";
  result_of(bayes("vit_mini_28", run,
                  {"--jobs", "6", "--proposals", "8", "--trials", "12", "--no-retrain"}));
  const std::vector<store::StoredTrial> trials = trials_of(run);
  ASSERT_EQ(trials.size(), 12U);
  for (const store::StoredTrial& trial : trials) {
    EXPECT_EQ(trial.facts.at("seed"), 0);
    if (trial.number == 8) continue;
    // When the tenth is asked for, four are over at least.
    EXPECT_EQ(trial.facts.at("proposer"), trial.number < 8 ? "random" : "features") << trial.number;
  }
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
  for (const char* flag : {"--finalists", "--final-training"}) {
    expect_refused(kUsage, {flag, "--join runs trials alone"},
                   {"search", "--join", "--output", run, flag, "2"});
  }
  const ProgramResult joined =
      adjoin({"search", "--join", "--output", run, "--trials", "12", "--json"});
  EXPECT_EQ(Json::parse(joined.out).at("trials"), 2);
  EXPECT_NE(joined.err.find("result.json is of before; --resume"), std::string::npos) << joined.err;
  result_of({"report", run});
  EXPECT_NE(read_file(run + "/report.html").find("2 trials ended after the winner was chosen"),
            std::string::npos);
}

/// The processes that a program started.
std::vector<pid_t> children_of(pid_t program) {
  std::ifstream list(fmt::format("/proc/{0}/task/{0}/children", program));
  return {std::istream_iterator<pid_t>(list), {}};
}

/// Of a process, those that begin with a prefix.
Words variables_of(pid_t process, std::string_view prefix) {
  std::ifstream file(fmt::format("/proc/{}/environ", process));
  Words found;
  for (std::string variable; std::getline(file, variable, '\0');) {
    if (variable.starts_with(prefix)) found.push_back(variable);
  }
  return found;
}

TEST(BayesProcessesTest, AWorkerThatIsKilledLeavesItsTrialToTheOthers) {
  const TempFolder folder;
  const std::string run = folder / "run";
  RunningProgram program(
      ADJOIN_BINARY,
      bayes("vit_mini_28", run,
            {"--jobs", "2", "--trials", "4", "--search-epochs", "30", "--halving", "0",
             "--no-retrain", "--json", "--checkpoint-interval", "1"}),
      {"OMP_NUM_THREADS=64"});
  const auto is_at_two = [&] {
    return log_lines(run + "/search/trial-000") > 8 && log_lines(run + "/search/trial-001") > 8;
  };
  ASSERT_TRUE(wait_until(program, is_at_two)) << program.wait().err;
  const std::vector<pid_t> workers = children_of(program.pid());
  ASSERT_EQ(workers.size(), 1U);
  const int share = std::max(1, available_cpus() / 2);
  EXPECT_EQ(variables_of(workers[0], "OMP_NUM_THREADS="),
            Words{fmt::format("OMP_NUM_THREADS={}", share)})
      << "all of them together have as many threads as there are CPUs";
  kill(workers[0], SIGKILL);
  const ProgramResult result = program.wait();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("worker 1 was ended by signal 9"), std::string::npos) << result.err;
  const Json json = parse_json(result.out, "stdout");
  EXPECT_EQ(json.at("states").at("complete"), 4);
  EXPECT_EQ(json.at("attempts"), 5);
}

TEST(BayesProcessesTest, AreWaitedForByTheOneThatLooksForTheBest) {
  const TempFolder folder;
  const std::string run = folder / "run";
  const Words args = bayes("vit_mini_28", run,
                           {"--trials", "1", "--search-epochs", "30", "--halving", "0",
                            "--no-retrain", "--resume", "--json"});
  const auto lines = [&] { return log_lines(run + "/search/trial-000"); };
  {
    RunningProgram first(ADJOIN_BINARY, args);
    ASSERT_TRUE(wait_until(first, [&] { return lines() > 8; })) << first.wait().err;
    first.signal(SIGKILL);
    first.wait();
  }
  const int64_t before = lines();
  RunningProgram joined(ADJOIN_BINARY, {"search", "--join", "--output", run});
  ASSERT_TRUE(wait_until(joined, [&] { return lines() > before + 2; })) << joined.wait().err;
  joined.signal(SIGSTOP);
  RunningProgram again(ADJOIN_BINARY, args);
  std::this_thread::sleep_for(std::chrono::seconds(1));  // most likely it waits by now
  joined.signal(SIGCONT);
  const ProgramResult result = again.wait();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = parse_json(result.out, "stdout");
  EXPECT_EQ(json.at("states").at("complete"), 1);
  EXPECT_EQ(json.at("attempts"), 2);
  EXPECT_EQ(joined.wait().exit_code, 0);
}

TEST(BayesProcessesTest, AreWaitedForBeyondTheTrialsThatAreWanted) {
  const TempFolder folder;
  const std::string run = folder / "run";
  const Words args = bayes("vit_mini_28", run,
                           {"--search-epochs", "30", "--halving", "0", "--no-retrain", "--resume",
                            "--json", "--checkpoint-interval", "1"});
  const auto lines = [&](const char* trial) { return log_lines(run + "/search/" + trial); };
  RunningProgram first(ADJOIN_BINARY, args);
  ASSERT_TRUE(wait_until(first, [&] { return lines("trial-000") > 2; })) << first.wait().err;
  RunningProgram joined(ADJOIN_BINARY, {"search", "--join", "--output", run});
  ASSERT_TRUE(wait_until(joined, [&] { return lines("trial-001") > 2; })) << joined.wait().err;
  joined.signal(SIGSTOP);
  first.signal(SIGKILL);
  first.wait();
  Words few = args;
  few.insert(few.end(), {"--trials", "1"});
  RunningProgram again(ADJOIN_BINARY, few);
  const auto is_over = [&] { return store::Study::read(run + "/study.db").tally().over > 0; };
  ASSERT_TRUE(wait_until(again, is_over)) << again.wait().err;
  std::this_thread::sleep_for(std::chrono::seconds(2));
  EXPECT_FALSE(again.is_over()) << "it waits";
  joined.signal(SIGCONT);
  const ProgramResult result = again.wait();
  joined.signal(SIGKILL);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GE(parse_json(result.out, "stdout").at("states").at("complete"), 2);
}

TEST(BayesProcessesTest, OneAtATimeTrainsWhatWasFound) {
  const TempFolder folder;
  const std::string run = folder / "run";
  RunningProgram program(ADJOIN_BINARY, bayes("vit_mini_28", run,
                                              {"--trials", "2", "--search-epochs", "1", "--epochs",
                                               "30", "--finalists", "2"}));
  ASSERT_TRUE(wait_until(program, [&] {
    return log_lines(run + "/final-000") + log_lines(run + "/final-001") > 3;
  })) << program.wait().err;
  expect_refusal({"search", "--resume", "--output", run}, kBadData,
                 {run, "another run is writing to this folder"});
  const ProgramResult result = program.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json finalists = read_json_file(run + "/result.json").at("finalists");
  ASSERT_EQ(finalists.size(), 2U);
  const std::string final =
      fmt::format("{}/final-{:03}", run, finalists[0].at("trial").get<int64_t>());
  EXPECT_EQ(finalists[0].at("file"), final + "/small.safetensors");
  EXPECT_EQ(result_of({"report", final}).at("runs").size(), 1U);
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
  // A study that was put back and knows less than the checkpoint.
  const ProgramResult older =
      run_program(kPython, {"-c",
                            "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); "
                            "db.execute(\"DELETE FROM trial_user_attributes WHERE key IN "
                            "('losses', 'tops')\"); db.commit()",
                            run + "/study.db"});
  ASSERT_EQ(older.exit_code, 0) << older.err;
  expect_refusal(args, kBadData, {"study.db", "knows 0 epochs of trial 0", "last.ckpt"});
  for (const char* end : {"", "-wal", "-shm"}) {
    std::filesystem::remove(run + "/study.db" + end);
  }
  Words other = args;  // trial 0 is another network then
  other.insert(other.end(), {"--target-macs", "0.2x"});
  std::filesystem::remove_all(run + "/teacher");
  const ProgramResult anew = adjoin(other, {"--json"});
  EXPECT_NE(anew.err.find("study.db: is not there, or empty; trials begin anew"), std::string::npos)
      << anew.err;
  EXPECT_EQ(parse_json(anew.out, "out").at("states").at("complete"), 2);
}

}  // namespace
}  // namespace adjoin
