#include "train/ranks.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <iostream>

#include "adjoin/core/error.h"

namespace adjoin::train {

const std::map<std::string, Role>& roles() {
  static const std::map<std::string, Role> kRoles = {
      {"meeting", &play_meeting},
      {"sums", &play_sums},
      {"sums_until_one_dies", &play_sums_until_one_dies},
      {"sums_until_one_is_suspended", &play_sums_until_one_is_suspended},
      {"gradients", &play_gradients},
  };
  return kRoles;
}

int free_port() {
  const int handle = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(handle, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(handle, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no free port");
  }
  close(handle);
  return ntohs(address.sin_port);
}

Ranks::Ranks(const std::string& role, int size) {
  const std::string port = std::to_string(free_port());
  for (int rank = 0; rank < size; ++rank) {
    const std::vector<std::string> args = {"env",
                                           "ADJOIN_TEST_ROLE=" + role,
                                           "RANK=" + std::to_string(rank),
                                           "LOCAL_RANK=" + std::to_string(rank),
                                           "WORLD_SIZE=" + std::to_string(size),
                                           "MASTER_ADDR=127.0.0.1",
                                           "MASTER_PORT=" + port,
                                           "OMP_NUM_THREADS=1",
                                           "GLOG_minloglevel=2",
                                           "/proc/" + std::to_string(getpid()) + "/exe"};
    std::vector<char*> argv;
    for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
    argv.push_back(nullptr);
    auto process = std::make_unique<Process>();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, process->out.descriptor(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, process->err.descriptor(), STDERR_FILENO);
    const int failure =
        posix_spawn(&process->id, "/usr/bin/env", &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failure != 0) throw std::runtime_error("cannot start a rank");
    processes_.push_back(std::move(process));
  }
}

ProgramResult Ranks::finish(int rank) {
  Process& process = *processes_.at(static_cast<size_t>(rank));
  int status = 0;
  if (waitpid(process.id, &status, 0) != process.id) throw std::runtime_error("lost a rank");
  process.id = 0;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, process.out.text(), process.err.text()};
}

Ranks::~Ranks() {
  for (const auto& process : processes_) {
    if (process->id == 0) continue;
    kill(process->id, SIGKILL);
    waitpid(process->id, nullptr, 0);
  }
}

}  // namespace adjoin::train

int main(int argc, char** argv) {
  const char* role = std::getenv("ADJOIN_TEST_ROLE");
  if (role == nullptr) {
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
  }
  try {
    std::cout << adjoin::train::roles().at(role)();
    return 0;
  } catch (const adjoin::Error& e) {
    std::cout << "error " << static_cast<int>(e.kind()) << ": " << e.what() << "\n";
    return adjoin::exit_code(e.kind());
  }
}
