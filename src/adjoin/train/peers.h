#pragma once

// Who the other processes are, so that an error can name the one that is gone. Connections only say
// that someone is; on the same machine the process table says who.

#include <string>
#include <vector>

namespace adjoin::train {

/// This process for the others: machine, process id, start time.
std::string describe_self();

enum class PeerState { kUnknown, kRunning, kSuspended, kGone };

/// What became of a process; kUnknown for one on another machine.
PeerState state_of(const std::string& description);

/// One sentence on which process failed the others, after a call that failed.
struct Failure {
  int rank = 0;                    ///< of this process
  std::vector<std::string> peers;  ///< description of each rank
  bool is_timeout = false;         ///< nobody closed a connection; someone is silent
  double seconds = 0;              ///< how long a process waits
  std::string reason;              ///< as the backend puts it
};
std::string explain(const Failure& failure);

}  // namespace adjoin::train
