#pragma once

// More of this program beside it: processes that end with it.

#include <sys/types.h>

#include <string>
#include <vector>

#include "adjoin/core/signals.h"

namespace adjoin::cli {

class WorkerProcesses {
 public:
  WorkerProcesses() = default;
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;
  /// Asks those that still run to stop, and waits.
  ~WorkerProcesses();

  /// This program with other arguments; what it says goes to the file `log`. `threads`: to compute
  /// with.
  void start(const std::vector<std::string>& args, const std::string& log, int threads);

  /// Waits for all; those that failed, by number from 0 with their exit code. When this process is
  /// to stop they are asked to, too.
  std::vector<std::pair<size_t, int>> wait(const StopSignal& stop);

 private:
  void ask_to_stop(size_t first) const;

  std::vector<pid_t> running_;
};

}  // namespace adjoin::cli
