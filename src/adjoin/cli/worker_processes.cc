#include "adjoin/cli/worker_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include "adjoin/core/error.h"

namespace adjoin::cli {
namespace {

/// The exit code of a process that ended, 128 and the signal of one that was killed.
int waited(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

void WorkerProcesses::start(const std::vector<std::string>& args, const std::string& log,
                            int threads) {
  std::vector<std::string> words = {"adjoin"};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  // NOLINTNEXTLINE(*-vararg)
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (out < 0) {
    throw Error(ErrorKind::kIo, fmt::format("{}: cannot be written: {}", log, strerror(errno)));
  }
  std::vector<std::string> variables = {fmt::format("OMP_NUM_THREADS={}", threads)};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("OMP_NUM_THREADS=")) {
      variables.emplace_back(*variable);
    }
  }
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process < 0) {
    close(out);
    throw Error(ErrorKind::kInternal,
                fmt::format("another process cannot be started: {}", strerror(errno)));
  }
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // NOLINT(*-vararg)
    if (getppid() != parent) _exit(143);
    setpgid(0, 0);  // Ctrl-C is for the first process, which tells the others
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execve("/proc/self/exe", pointers.data(), environment.data());
    _exit(127);
  }
  close(out);
  running_.push_back(process);
}

std::vector<std::pair<size_t, int>> WorkerProcesses::wait(const StopSignal& stop) {
  constexpr auto kPause = std::chrono::milliseconds(20);
  std::vector<std::pair<size_t, int>> failed;
  bool is_asked = false;
  for (size_t i = 0; i < running_.size(); ++i) {
    siginfo_t ended{};
    while (waitid(P_PID, static_cast<id_t>(running_[i]), &ended, WEXITED | WNOHANG | WNOWAIT) ==
               0 &&
           ended.si_pid == 0) {
      if (stop.received() != 0 && !std::exchange(is_asked, true)) ask_to_stop(i);
      std::this_thread::sleep_for(kPause);
    }
    const int code = waited(running_[i]);
    if (code != 0) failed.emplace_back(i, code);
  }
  running_.clear();
  return failed;
}

void WorkerProcesses::ask_to_stop(size_t first) const {
  for (size_t i = first; i < running_.size(); ++i) kill(running_[i], SIGTERM);
}

WorkerProcesses::~WorkerProcesses() {
  ask_to_stop(0);
  for (const pid_t process : running_) waited(process);
}

}  // namespace adjoin::cli
