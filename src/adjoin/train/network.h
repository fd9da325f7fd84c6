#pragma once

// Which of this machine's addresses the other processes can reach, and whether theirs can be.

#include <chrono>
#include <string>

namespace adjoin::train {

/// This machine's address on the way to `host`: the loopback one for a loopback host. Where the
/// name of this machine leads to loopback (Debian's /etc/hosts) it is the first other address.
std::string own_address(const std::string& host, int port);

bool has_interface(const std::string& name);

/// Whether nobody listens at a port of this machine.
bool is_port_free(int port);

/// Tries until something accepts connections there; false when nothing did before the deadline.
bool wait_for_listener(const std::string& host, int port,
                       std::chrono::steady_clock::time_point deadline);

}  // namespace adjoin::train
