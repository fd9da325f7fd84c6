#pragma once

// Several processes of one job inside a test: the test program itself, started again with the
// variables of torchrun and the name of a role to play. Forking would copy LibTorch's thread pools
// without their threads.

#include <signal.h>

#include <map>
#include <memory>

#include "adjoin/train/group.h"
#include "support/run_program.h"

namespace adjoin::train {

/// What a process of a test does. What it returns, its test reads as its output; an Error as "error
/// KIND: message".
using Role = std::string (*)();

/// By name, for main() and the tests.
const std::map<std::string, Role>& roles();

std::string play_meeting();
std::string play_sums();
std::string play_sums_until_one_dies();
std::string play_sums_until_one_is_suspended();
std::string play_gradients();

/// A port that nobody uses now.
int free_port();

/// The processes of a job. Those that still run are killed with the object.
class Ranks {
 public:
  Ranks(const std::string& role, int size);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// Waits for the end of a process.
  ProgramResult finish(int rank);

 private:
  struct Process {
    pid_t id = 0;
    CapturedStream out;
    CapturedStream err;
  };
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace adjoin::train
