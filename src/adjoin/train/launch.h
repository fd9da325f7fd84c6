#pragma once

// Who started this process, and with which others: the variables that torchrun, Open MPI's mpirun
// and Slurm's srun give to each process of a job. Without them a process is alone. MASTER_ADDR and
// MASTER_PORT, where set, win over what mpirun and srun lead to.

#include <functional>
#include <string>
#include <string_view>

namespace adjoin::train {

/// Where a process stands among those that were started with it.
struct Launch {
  int rank = 0;
  int size = 1;
  int local_rank = 0;        ///< among those on the same machine: which GPU is its own
  std::string address = {};  ///< where process 0 waits for the others; empty when there are none
  int port = 0;
  std::string job = {};    ///< the same for all processes of the job, unlike other jobs
  bool is_served = false;  ///< torchrun's agent listens at the address, not process 0
};

/// A variable's value, or null when it is not set.
using Lookup = std::function<const char*(const char* name)>;

/// What the variables say. Error(kUsage) when they contradict themselves or leave out what is
/// needed.
Launch launch_from(const Lookup& lookup);

/// The same for the variables of this process.
Launch launch_from_environment();

/// A Slurm list of machines, "node[03-05,9],b1": its first machine and whether there are others.
struct NodeList {
  std::string first;
  bool has_more = false;
};
NodeList parse_node_list(std::string_view text);

/// Whether an address means this machine alone.
bool is_loopback(const std::string& address);

}  // namespace adjoin::train
