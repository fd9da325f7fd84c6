#include "adjoin/train/meeting.h"

#include <fmt/format.h>

#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "adjoin/core/error.h"
#include "adjoin/train/network.h"
#include "adjoin/train/peers.h"

namespace adjoin::train {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void give_up_on(int rank, const Launch& launch, std::chrono::milliseconds patience,
                             const std::string& hint) {
  throw Error(ErrorKind::kIo,
              fmt::format("process {} of {} did not come to {} within {}{}", rank, launch.size,
                          place_of(launch), in_seconds(patience), hint));
}

c10::intrusive_ptr<c10d::Store> open_store(const Launch& launch,
                                           std::chrono::milliseconds patience) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(launch.port);
  options.isServer = launch.rank == 0 && !launch.is_served;
  options.waitWorkers = false;  // the roll call below can say who is missing
  options.timeout = std::chrono::ceil<std::chrono::seconds>(patience);  // c10d drops fractions
#if ADJOIN_TORCH >= 20400
  options.useLibUV = false;  // which a LibTorch may have been built without
#endif
  // Looked at beforehand: c10d would write lines of its own about what it cannot reach.
  if (options.isServer && !is_port_free(launch.port)) {
    throw Error(ErrorKind::kIo, fmt::format("port {} is in use by another program: set MASTER_PORT "
                                            "to a free one for all processes",
                                            launch.port));
  }
  if (!options.isServer &&
      !wait_for_listener(launch.address, launch.port, Clock::now() + patience)) {
    give_up_on(0, launch, patience,
               ": MASTER_ADDR and MASTER_PORT must name its machine and a port that can be reached "
               "there");
  }
  try {
    return c10::make_intrusive<c10d::TCPStore>(launch.address, options);
  } catch (const std::exception& failure) {
    throw Error(ErrorKind::kIo, fmt::format("process {} of {} cannot open {}: {}", launch.rank,
                                            launch.size, place_of(launch), reason_of(failure)));
  }
}

std::string key_of(int rank) { return "here/" + std::to_string(rank); }

/// Leaves the name of this process and collects those of all.
std::vector<std::string> call_the_roll(c10d::Store& store, const Launch& launch,
                                       std::chrono::milliseconds patience,
                                       Clock::time_point deadline) {
  const std::string self = describe_self();
  store.set(key_of(launch.rank), std::vector<uint8_t>(self.begin(), self.end()));
  std::vector<std::string> peers;
  for (int rank = 0; rank < launch.size; ++rank) {
    while (!store.check({key_of(rank)})) {
      if (Clock::now() > deadline) give_up_on(rank, launch, patience, "");
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const std::vector<uint8_t> name = store.get(key_of(rank));
    peers.emplace_back(name.begin(), name.end());
  }
  return peers;
}

}  // namespace

std::string place_of(const Launch& launch) {
  return launch.address + ":" + std::to_string(launch.port);
}

std::string in_seconds(std::chrono::milliseconds time) {
  return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
}

std::string reason_of(const std::exception& failure) {
  constexpr size_t kMost = 200;
  std::string text = failure.what();
  if (const auto* of_torch = dynamic_cast<const c10::Error*>(&failure)) {
    text = of_torch->what_without_backtrace();
  }
  return one_line(text.substr(0, std::min(text.find('\n'), kMost)));
}

Meeting meet(const Launch& launch, std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  // Jobs that meet at the same place by mistake must not take each other's keys for their own.
  const auto store =
      c10::make_intrusive<c10d::PrefixStore>("adjoin/" + launch.job, open_store(launch, patience));
  try {
    return {store, call_the_roll(*store, launch, patience, deadline)};
  } catch (const Error&) {
    throw;
  } catch (const std::exception& failure) {
    throw Error(ErrorKind::kIo, fmt::format("process 0 of {} left {} before all had come: {}",
                                            launch.size, place_of(launch), reason_of(failure)));
  }
}

}  // namespace adjoin::train
