// Several processes on one study, and processes that are killed.

#include <poll.h>
#include <sys/resource.h>

#include <map>
#include <random>
#include <set>

#include "store/store_support.h"

namespace adjoin::store {
namespace {

class StudyProcessesTest : public testing::Test {
 protected:
  const TempFolder folder_;
  const std::string path_ = folder_ / "study.db";
  std::mt19937 random_{0};
};

/// Claims and finishes trials for ever, and adds one when there is none. Says what is on disk:
/// after a report of epoch e of trial n, 10 n + e; after its end, 10 n + 9.
[[noreturn]] void work_for_ever(const std::string& path, const Pipe& pipe) {
  Study study = open_study(path);
  for (;;) {
    const auto claim = study.claim();
    if (!claim) {
      const auto known = static_cast<int64_t>(study.trials().size());
      study.add(known, proposals(1));
      continue;
    }
    const int64_t number = claim->trial().number;
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      study.report(number, epoch, static_cast<double>(number), {{"epoch", epoch}});
      pipe.send(10 * number + epoch);
    }
    study.finish(number, TrialState::kComplete, static_cast<double>(number), {{"done", true}});
    pipe.send(10 * number + 9);
  }
}

TEST_F(StudyProcessesTest, KeepsEverythingThatWasWrittenWhenAProcessIsKilled) {
  std::set<int64_t> written;
  for (int round = 0; round < 10; ++round) {
    Pipe pipe;
    Process worker([&]() -> int { work_for_ever(path_, pipe); });
    pipe.stop_sending();
    const int count = std::uniform_int_distribution(1, 20)(random_);
    for (int i = 0; i < count; ++i) written.insert(pipe.receive().value());
    poll(nullptr, 0, std::uniform_int_distribution(0, 5)(random_));  // any moment of a change
    EXPECT_EQ(worker.kill(), -1);
    while (const auto value = pipe.receive()) written.insert(*value);

    const auto trials = open_study(path_).trials();
    size_t unfinished = 0;
    for (const StoredTrial& trial : trials) {
      if (!trial.is_over()) ++unfinished;
      if (trial.state == TrialState::kComplete) {
        EXPECT_EQ(trial.reward, trial.number);
        EXPECT_EQ(trial.facts["done"], true);
      }
    }
    EXPECT_LE(unfinished, 1U);
    for (const int64_t value : written) {
      const StoredTrial& trial = trials.at(static_cast<size_t>(value / 10));
      if (value % 10 == 9) {
        EXPECT_EQ(trial.state, TrialState::kComplete) << value;
      } else {
        EXPECT_EQ(trial.curve.at(value % 10), trial.number) << value;
      }
    }
    EXPECT_EQ(run_sql(path_, "PRAGMA integrity_check"), std::vector<std::string>{"ok"});
  }
  EXPECT_GE(written.size(), 10U);
}

TEST_F(StudyProcessesTest, ACreationThatIsKilledLeavesNothingOrAWholeStudy) {
  size_t begun = 0;
  for (int round = 0; round < 40; ++round) {
    const std::string path = folder_ / std::to_string(round);
    {
      Process maker([&] {
        open_study(path);
        return 0;
      });
      poll(nullptr, 0, std::uniform_int_distribution(0, 12)(random_));
      if (maker.kill() == -1) ++begun;
    }
    Study study = open_study(path);
    EXPECT_EQ(study.about(), some_about());
    EXPECT_TRUE(study.add(0, proposals(1)));
    EXPECT_EQ(study.trials().size(), 1U);
  }
  EXPECT_GT(begun, 0U);
}

TEST_F(StudyProcessesTest, ProcessesThatBeginTheSameStudyAtOnceShareIt) {
  for (int round = 0; round < 10; ++round) {
    const std::string path = folder_ / std::to_string(round);
    int start[2];
    ASSERT_EQ(pipe(start), 0);
    std::vector<std::unique_ptr<Process>> makers;
    for (int i = 0; i < 4; ++i) {
      makers.push_back(std::make_unique<Process>([&] {
        close(start[1]);
        char byte = 0;
        (void)!::read(start[0], &byte, 1);  // ends when the parent lets all begin
        Study study = open_study(path);
        while (!study.add(static_cast<int64_t>(study.trials().size()), proposals(1))) {
        }
        return 0;
      }));
    }
    close(start[1]);
    close(start[0]);
    for (const auto& maker : makers) EXPECT_EQ(maker->wait(), 0);
    EXPECT_EQ(Study::read(path).trials().size(), 4U);
    EXPECT_EQ(run_sql(path, "SELECT count(*) FROM studies"), std::vector<std::string>{"1"});
  }
}

TEST_F(StudyProcessesTest, SeveralProcessesTryEachTrialExactlyOnce) {
  open_study(path_).add(0, proposals(200));
  std::vector<std::unique_ptr<Process>> workers;
  Pipe pipe;
  for (int i = 0; i < 4; ++i) {
    workers.push_back(std::make_unique<Process>([&] {
      Study study = open_study(path_);
      while (const auto claim = study.claim()) {
        const int64_t number = claim->trial().number;
        study.finish(number, TrialState::kComplete, 1, Json::object());
        pipe.send(number);
      }
      return 0;
    }));
  }
  pipe.stop_sending();
  std::multiset<int64_t> tried;
  while (const auto number = pipe.receive()) tried.insert(*number);
  for (const auto& worker : workers) EXPECT_EQ(worker->wait(), 0);
  EXPECT_EQ(tried.size(), 200U);
  for (const StoredTrial& trial : Study::read(path_).trials()) {
    EXPECT_EQ(tried.count(trial.number), 1U);
    EXPECT_EQ(trial.state, TrialState::kComplete);
    EXPECT_EQ(trial.facts["attempts"], 1);
  }
}

TEST_F(StudyProcessesTest, TheTrialOfAProcessThatDiedIsClaimedAgain) {
  open_study(path_).add(0, proposals(1));
  Pipe pipe;
  Process worker([&] {
    Study study = open_study(path_);
    const auto claim = study.claim();
    pipe.send(claim->trial().number);
    for (;;) pause();
    return 0;
  });
  pipe.stop_sending();
  EXPECT_EQ(pipe.receive(), 0);
  Study study = open_study(path_);
  EXPECT_FALSE(study.claim());
  EXPECT_EQ(study.trials().at(0).facts["attempts"], 1);
  worker.kill();
  const auto claim = study.claim();
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->trial().number, 0);
  EXPECT_EQ(claim->trial().facts["attempts"], 2);
}

TEST_F(StudyProcessesTest, OneProcessProposesAtATime) {
  open_study(path_);
  Pipe pipe;
  Process worker([&] {
    Study study = open_study(path_);
    const auto turn = study.try_proposing();
    pipe.send(turn ? 1 : 0);
    for (;;) pause();
    return 0;
  });
  pipe.stop_sending();
  EXPECT_EQ(pipe.receive(), 1);
  Study study = open_study(path_);
  EXPECT_FALSE(study.try_proposing());
  study.add(0, proposals(1));
  EXPECT_TRUE(study.claim()) << "trials are claimed all the while";
  worker.kill();
  { EXPECT_TRUE(study.try_proposing()); }
  EXPECT_TRUE(study.try_proposing()) << "given back";
}

TEST_F(StudyProcessesTest, IsReadAsAWholeWhileAnotherWrites) {
  open_study(path_);
  Pipe pipe;
  Process worker([&]() -> int { work_for_ever(path_, pipe); });
  pipe.stop_sending();
  size_t finished = 0;
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(pipe.receive());
    size_t now = 0;
    for (const StoredTrial& trial : Study::read(path_).trials()) {
      if (!trial.is_over()) continue;
      ++now;
      EXPECT_EQ(trial.reward, trial.number);
      EXPECT_EQ(trial.curve.size(), 2U);
    }
    EXPECT_GE(now, finished);
    finished = now;
  }
  EXPECT_GT(finished, 0U);
}

TEST_F(StudyProcessesTest, ALockedFileIsAnErrorAfterTheWait) {
  make_study(path_);
  Study study = open_study(path_, 0.2);
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  expect_error(ErrorKind::kIo, {path_, "locked by another program", "waited 0.2 s"},
               [&] { study.claim(); });
  EXPECT_EQ(study.trials().size(), 3U);
  ASSERT_EQ(sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_EQ(study.claim()->trial().number, 1);
  sqlite3_close(other);
}

TEST_F(StudyProcessesTest, ASignalEndsTheWaitForALockedFile) {
  const std::string fresh = path_ + ".fresh";  // a study is begun there only when nobody has it
  make_study(path_);
  const StopSignal stop;
  Study study = open_study(path_, 60);
  const Heeding heeding(study, stop);
  Study::Options options;
  options.wait_seconds = 60;
  options.stop = &stop;
  std::raise(SIGTERM);
  const auto expect_stopped = [](const std::string& path, const std::function<void()>& act) {
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &other), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
    try {
      act();
      ADD_FAILURE() << path << ": must be stopped";
    } catch (const Stopped& stopped) {
      EXPECT_EQ(stopped.signal, SIGTERM);
    }
    sqlite3_close(other);
  };
  expect_stopped(path_, [&] { study.claim(); });
  expect_stopped(fresh, [&] { Study::open(fresh, "a study", some_about(), options); });
}

TEST_F(StudyProcessesTest, AFileThatIsLockedBeforeItsStudyBeganIsAnErrorToo) {
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  expect_error(ErrorKind::kIo, {path_, "locked by another program", "waited 0.1 s"},
               [&] { open_study(path_, 0.1); });
  sqlite3_close(other);
  EXPECT_EQ(open_study(path_).trials().size(), 0U);
}

/// The kind of error of `act` in a process, 50 without one, 51 when its message lacks a part.
int outcome(const std::string& part, const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& e) {
    if (contains(e.what(), part)) return static_cast<int>(e.kind());
    (void)!write(2, e.what(), std::string(e.what()).size());
    return 51;
  }
  return 50;
}

/// The same by a user who is not root.
int outcome_for_others(const std::string& part, const std::function<void()>& act) {
  Process user([&] {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return 52;
    return outcome(part, act);
  });
  return user.wait();
}

constexpr int kIo = static_cast<int>(ErrorKind::kIo);
constexpr int kFine = 50;

TEST_F(StudyProcessesTest, SaysWhenAFileOrItsFolderMayOnlyBeRead) {
  make_study(path_);
  chmod(folder_.path().c_str(), 0777);
  chmod(path_.c_str(), 0444);
  EXPECT_EQ(outcome_for_others("may only be read", [&] { open_study(path_); }), kIo);
  chmod(path_.c_str(), 0600);
  EXPECT_EQ(outcome_for_others("Permission denied", [&] { Study::read(path_); }),
            geteuid() == 0 ? kIo : kFine);
  chmod(folder_.path().c_str(), 0555);
  EXPECT_EQ(outcome_for_others("cannot be opened", [&] { open_study(folder_ / "new"); }), kIo);
  chmod(folder_.path().c_str(), 0777);
}

TEST_F(StudyProcessesTest, CanBeReadWhereNothingCanBeWritten) {
  const std::string path = folder_ / "50% of?.db";  // a name that is not a plain URI
  make_study(path);
  chmod(path.c_str(), 0444);
  chmod(folder_.path().c_str(), 0555);
  const auto count = [&] {
    const size_t trials = Study::read(path).trials().size();
    if (trials != 3) throw Error(ErrorKind::kInternal, "it has not three trials");
  };
  EXPECT_EQ(outcome_for_others("", count), kFine);
  // Also while another process, which may, holds it open.
  if (geteuid() != 0) chmod(folder_.path().c_str(), 0755);
  Pipe pipe;
  Process worker([&] {
    chmod(path.c_str(), 0644);
    Study study = open_study(path);
    study.set_fact("log", "has something");
    pipe.send(1);
    for (;;) pause();
    return 0;
  });
  EXPECT_EQ(pipe.receive(), 1);
  EXPECT_EQ(outcome_for_others("", count), kFine);
  worker.kill();
  chmod(folder_.path().c_str(), 0755);
}

TEST_F(StudyProcessesTest, AFullDiskIsAnErrorAndLosesNothing) {
  open_study(path_).add(0, proposals(1));
  Process writer([&] {
    Study study = open_study(path_);
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{300'000, 300'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    return outcome("written", [&] {
      for (int64_t i = 1;; ++i) study.add(i, proposals(1)), study.set_fact("count", i);
    });
  });
  EXPECT_EQ(writer.wait(), kIo);
  const Study study = open_study(path_);
  const auto count = static_cast<int64_t>(study.trials().size());
  EXPECT_GT(count, 1);
  EXPECT_GE(study.fact("count").get<int64_t>(), count - 2);
}

}  // namespace
}  // namespace adjoin::store
