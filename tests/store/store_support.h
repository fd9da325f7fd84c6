#pragma once

// What the tests of studies share: sound studies, plain SQLite beside the store, other processes.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "adjoin/store/study.h"
#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace adjoin::store {

inline Json some_about() { return {{"model", "deit_tiny"}, {"budget", 1.5}, {"seed", 7}}; }

inline Study open_study(const std::string& path, double wait_seconds = 30) {
  return Study::open(path, "a study", some_about(), {wait_seconds});
}

inline std::vector<Proposal> proposals(int64_t count) {
  std::vector<Proposal> made;
  for (int64_t i = 0; i < count; ++i) {
    Proposal proposal;
    proposal.facts = {{"architecture", {{"depth", i + 1}}}, {"macs", 100 * i}};
    proposal.parameters = {{"depth", static_cast<double>(i % 8 + 1), 1, 8},
                           {"norm", 1, 0, 0, {"pre", "post"}}};
    made.push_back(proposal);
  }
  return made;
}

/// Three trials: one complete, one that runs and is free, one that waits. The file is closed.
inline void make_study(const std::string& path) {
  Study study = open_study(path);
  study.set_fact("best", {{"number", 0}});
  study.add(0, proposals(3));
  {
    const auto first = study.claim();
    study.report(0, 0, 0.25, {{"seconds", 3}});
    study.report(0, 1, 0.5, Json::object());
    study.finish(0, TrialState::kComplete, 0.5, {{"top1", 50.5}});
  }
  const auto second = study.claim();
  study.report(1, 0, 0.125, Json::object());
}

/// Runs statements by plain SQLite; each row that comes out as one text, columns joined by "|".
inline std::vector<std::string> run_sql(const std::string& path, const std::string& sql) {
  sqlite3* handle = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  std::vector<std::string> rows;
  const auto keep = [](void* into, int count, char** values, char**) {
    std::string row;
    for (int i = 0; i < count; ++i) {
      row += (i > 0 ? "|" : "") + std::string(values[i] != nullptr ? values[i] : "NULL");
    }
    static_cast<std::vector<std::string>*>(into)->push_back(row);
    return 0;
  };
  char* message = nullptr;
  EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), keep, &rows, &message), SQLITE_OK)
      << sql << ": " << (message != nullptr ? message : "");
  sqlite3_free(message);
  sqlite3_close(handle);
  return rows;
}

/// Another process, which ends when `act` does, with what it gives as its exit code. No study may
/// be open when one begins: SQLite does not survive a fork.
class Process {
 public:
  explicit Process(const std::function<int()>& act) : id_(fork()) {
    if (id_ != 0) return;
    int code = 99;
    try {
      code = act();
    } catch (const std::exception& e) {
      (void)!write(2, e.what(), std::string(e.what()).size());
      (void)!write(2, "\n", 1);
    }
    _exit(code);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (id_ > 0) kill();
  }

  /// Its exit code; -1 when it was killed.
  int wait() {
    int status = 0;
    waitpid(std::exchange(id_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  int kill() {
    ::kill(id_, SIGKILL);
    return wait();
  }

 private:
  pid_t id_;
};

/// Numbers from other processes to this one. The reading side sees the end when all of them ended.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(ends_), 0); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close(ends_[0]);
    stop_sending();
  }

  void send(int64_t value) const { (void)!write(ends_[1], &value, sizeof value); }
  /// Of this process.
  void stop_sending() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
  }
  std::optional<int64_t> receive() const {
    int64_t value = 0;
    if (::read(ends_[0], &value, sizeof value) != sizeof value) return std::nullopt;
    return value;
  }

 private:
  int ends_[2] = {-1, -1};
};

}  // namespace adjoin::store
