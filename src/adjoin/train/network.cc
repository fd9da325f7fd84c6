#include "adjoin/train/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>

#include "adjoin/train/launch.h"

namespace adjoin::train {
namespace {

/// "10.0.0.7"; empty when it is no address of the internet.
std::string numeric(const sockaddr* address) {
  const bool is_v6 = address->sa_family == AF_INET6;
  if (!is_v6 && address->sa_family != AF_INET) return {};
  char text[NI_MAXHOST];
  const socklen_t size = is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  const int failure = getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return failure == 0 ? text : std::string();
}

/// The address the system would send from. Connecting a datagram socket sends nothing.
std::string source_towards(const addrinfo& target) {
  const int handle = socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (handle < 0) return {};
  std::string found;
  sockaddr_storage own = {};
  socklen_t size = sizeof own;
  if (connect(handle, target.ai_addr, target.ai_addrlen) == 0 &&
      getsockname(handle, reinterpret_cast<sockaddr*>(&own), &size) == 0) {
    found = numeric(reinterpret_cast<sockaddr*>(&own));
  }
  close(handle);
  return found;
}

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

/// Empty when the name cannot be resolved.
AddressList resolve(const std::string& host, int port, int socket_type) {
  addrinfo hints = {};
  hints.ai_socktype = socket_type;
  addrinfo* list = nullptr;
  const int failure = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  return {failure == 0 ? list : nullptr, &freeaddrinfo};
}

std::string address_towards(const std::string& host, int port) {
  const AddressList list = resolve(host, port, SOCK_DGRAM);
  for (const addrinfo* target = list.get(); target != nullptr; target = target->ai_next) {
    const std::string found = source_towards(*target);
    if (!found.empty() && !is_loopback(found)) return found;
  }
  return {};
}

/// The first IPv4 address of an interface that is up and not loopback.
std::string first_outside_address() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> guard(list, &freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const bool is_usable = (entry->ifa_flags & IFF_UP) != 0 &&
                           (entry->ifa_flags & IFF_LOOPBACK) == 0 && entry->ifa_addr != nullptr &&
                           entry->ifa_addr->sa_family == AF_INET;
    if (is_usable) return numeric(entry->ifa_addr);
  }
  return {};
}

/// Whether a connection comes about within two seconds.
bool accepts(const addrinfo& target) {
  constexpr int kWaitMs = 2000;
  const int handle = socket(target.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (handle < 0) return false;
  bool is_open = connect(handle, target.ai_addr, target.ai_addrlen) == 0;
  if (!is_open && errno == EINPROGRESS) {
    pollfd wanted = {handle, POLLOUT, 0};
    int failure = 0;
    socklen_t size = sizeof failure;
    is_open = poll(&wanted, 1, kWaitMs) == 1 &&
              getsockopt(handle, SOL_SOCKET, SO_ERROR, &failure, &size) == 0 && failure == 0;
  }
  close(handle);
  return is_open;
}

}  // namespace

std::string own_address(const std::string& host, int port) {
  if (is_loopback(host)) return host == "::1" ? host : "127.0.0.1";
  std::string found = address_towards(host, port);
  if (found.empty()) found = first_outside_address();
  return found.empty() ? "127.0.0.1" : found;
}

bool has_interface(const std::string& name) { return if_nametoindex(name.c_str()) != 0; }

bool is_port_free(int port) {
  const int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (handle < 0) return true;  // listening itself will say what is wrong
  const int yes = 1;            // as c10d listens: connections of the past do not count
  setsockopt(handle, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  const bool is_taken = bind(handle, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 &&
                        errno == EADDRINUSE;
  close(handle);
  return !is_taken;
}

bool wait_for_listener(const std::string& host, int port,
                       std::chrono::steady_clock::time_point deadline) {
  auto pause = std::chrono::milliseconds(5);
  while (true) {
    const AddressList list = resolve(host, port, SOCK_STREAM);
    for (const addrinfo* target = list.get(); target != nullptr; target = target->ai_next) {
      if (accepts(*target)) return true;
    }
    if (std::chrono::steady_clock::now() + pause > deadline) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(500));
  }
}

}  // namespace adjoin::train
