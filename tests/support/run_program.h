#pragma once

// Runs a program to its end, as a shell would, and keeps what it wrote on either stream apart.

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace adjoin {

struct ProgramResult {
  int exit_code = -1;  ///< 128 + signal if one ended it
  std::string out;
  std::string err;
};

/// An unnamed file that takes one stream of the program; a pipe could fill and block it.
class CapturedStream {
 public:
  CapturedStream() : file_(std::tmpfile(), &std::fclose) {
    if (!file_) throw std::runtime_error("cannot make a temporary file");
  }

  int descriptor() const { return fileno(file_.get()); }

  std::string text() const {
    std::rewind(file_.get());
    std::string result;
    char buffer[4096];
    while (const size_t count = std::fread(buffer, 1, sizeof buffer, file_.get())) {
      result.append(buffer, count);
    }
    return result;
  }

 private:
  std::unique_ptr<FILE, int (*)(FILE*)> file_;
};

/// A program on its way; its standard input is empty.
class RunningProgram {
 public:
  /// `program` is a path. `variables` ("NAME=value") are added to the environment.
  RunningProgram(const std::string& program, const std::vector<std::string>& args,
                 const std::vector<std::string>& variables = {}) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", 0, 0);
    posix_spawn_file_actions_adddup2(&actions, out_.descriptor(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err_.descriptor(), STDERR_FILENO);
    std::vector<char*> argv = {const_cast<char*>(program.c_str())};
    for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
    argv.push_back(nullptr);
    std::vector<char*> environment;
    for (const std::string& variable : variables) {
      environment.push_back(const_cast<char*>(variable.c_str()));
    }
    for (char** variable = environ; *variable != nullptr; ++variable) {
      environment.push_back(*variable);
    }
    environment.push_back(nullptr);
    const int failure =
        posix_spawn(&child_, program.c_str(), &actions, nullptr, argv.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    if (failure != 0) throw std::runtime_error("cannot start " + program);
  }
  ~RunningProgram() {
    if (is_ended_) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  pid_t pid() const { return child_; }
  void signal(int number) const { kill(child_, number); }

  /// Whether it has ended; `wait` then returns at once.
  bool is_over() {
    if (is_ended_) return true;
    is_ended_ = waitpid(child_, &status_, WNOHANG) == child_;
    return is_ended_;
  }

  ProgramResult wait() {
    if (!is_ended_ && waitpid(child_, &status_, 0) != child_) {
      throw std::runtime_error("lost a program");
    }
    is_ended_ = true;
    const int code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
    return {code, out_.text(), err_.text()};
  }

 private:
  CapturedStream out_;
  CapturedStream err_;
  pid_t child_ = 0;
  bool is_ended_ = false;
  int status_ = 0;
};

inline ProgramResult run_program(const std::string& program, const std::vector<std::string>& args,
                                 const std::vector<std::string>& variables = {}) {
  return RunningProgram(program, args, variables).wait();
}

}  // namespace adjoin
