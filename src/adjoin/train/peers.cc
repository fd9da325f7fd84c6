#include "adjoin/train/peers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "adjoin/core/error.h"

namespace adjoin::train {
namespace {

/// This boot of this machine, and which of its process tables. Empty when that cannot be known.
std::string this_machine() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  char table[64] = {};
  const ssize_t size = readlink("/proc/self/ns/pid", table, sizeof table - 1);
  if (boot.empty() || size <= 0) return {};
  return boot + "/" + table;
}

struct TableEntry {
  char state = 0;  ///< 0: no such process
  std::string start_time;
};

TableEntry table_entry(const std::string& process) {
  std::string line;
  std::getline(std::ifstream("/proc/" + process + "/stat"), line);
  const size_t name_end = line.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return {};
  std::istringstream fields(line.substr(name_end + 1));
  TableEntry entry;
  fields >> entry.state;
  for (int field = 4; field <= 22; ++field) fields >> entry.start_time;
  return entry;
}

/// "process 1", "processes 1 and 2", "processes 1, 2 and 3", and of how many.
std::string name_ranks(const std::vector<size_t>& ranks, size_t size) {
  std::string text = ranks.size() == 1 ? "process " : "processes ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text + " of " + std::to_string(size);
}

std::vector<size_t> ranks_in(const Failure& failure, PeerState state) {
  std::vector<size_t> ranks;
  for (size_t i = 0; i < failure.peers.size(); ++i) {
    if (static_cast<int>(i) != failure.rank && state_of(failure.peers[i]) == state) {
      ranks.push_back(i);
    }
  }
  return ranks;
}

}  // namespace

std::string describe_self() {
  const std::string machine = this_machine();
  const std::string process = std::to_string(getpid());
  const TableEntry entry = table_entry(process);
  if (machine.empty() || entry.state == 0) return {};
  return machine + " " + process + " " + entry.start_time;
}

PeerState state_of(const std::string& description) {
  std::istringstream fields(description);
  std::string machine;
  std::string process;
  std::string start_time;
  if (!(fields >> machine >> process >> start_time)) return PeerState::kUnknown;
  if (process.find_first_not_of("0123456789") != std::string::npos) return PeerState::kUnknown;
  if (machine != this_machine()) return PeerState::kUnknown;
  const TableEntry entry = table_entry(process);
  if (entry.state == 0 || entry.start_time != start_time) return PeerState::kGone;
  switch (entry.state) {
    case 'Z':
    case 'X': return PeerState::kGone;
    case 'T':
    case 't': return PeerState::kSuspended;
    default: return PeerState::kRunning;
  }
}

std::string explain(const Failure& failure) {
  constexpr auto kPause = std::chrono::milliseconds(20);
  constexpr int kLooks = 25;  // a dying process closes its connections before it leaves the table
  const size_t size = failure.peers.size();
  for (int look = 0; look < kLooks; ++look) {
    if (const auto gone = ranks_in(failure, PeerState::kGone); !gone.empty()) {
      return fmt::format("{} {} gone: killed, or ended by an error of its own",
                         name_ranks(gone, size), gone.size() == 1 ? "is" : "are");
    }
    if (failure.is_timeout) break;
    std::this_thread::sleep_for(kPause);
  }
  std::string who = "another of the " + std::to_string(size) + " processes";
  if (size == 2) who = name_ranks({static_cast<size_t>(1 - failure.rank)}, size);
  if (!failure.is_timeout) return who + " is gone: " + one_line(failure.reason);
  const auto suspended = ranks_in(failure, PeerState::kSuspended);
  if (suspended.empty())
    return fmt::format("{} did not answer within {:g} s", who, failure.seconds);
  return fmt::format("{} did not answer within {:g} s: suspended by a signal",
                     name_ranks(suspended, size), failure.seconds);
}

}  // namespace adjoin::train
