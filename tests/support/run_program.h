#pragma once

// Runs a program to its end, as a shell would, and keeps what it wrote on either stream apart.

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

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

/// `program` is a path; its standard input is empty.
inline ProgramResult run_program(const std::string& program, const std::vector<std::string>& args) {
  const CapturedStream out;
  const CapturedStream err;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", 0, 0);
  posix_spawn_file_actions_adddup2(&actions, out.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.descriptor(), STDERR_FILENO);
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int failure = posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) throw std::runtime_error("cannot start " + program);
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("lost " + program);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, out.text(), err.text()};
}

}  // namespace adjoin
