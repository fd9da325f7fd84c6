#pragma once

// How the processes of a job find each other: a TCPStore at one address, where each leaves its name
// and waits for the names of all.

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "adjoin/tensor/torch.h"
#include "adjoin/train/launch.h"

namespace adjoin::train {

struct Meeting {
  c10::intrusive_ptr<c10d::Store> store;
  std::vector<std::string> peers;  ///< description of each rank, see peers.h
};

/// Error(kIo) in one sentence when not all come in time. May hang for longer when a stranger
/// listens at the address: c10d reads its answers without a limit.
Meeting meet(const Launch& launch, std::chrono::milliseconds patience);

/// "127.0.0.1:29500"
std::string place_of(const Launch& launch);

/// "60 s"
std::string in_seconds(std::chrono::milliseconds time);

/// What an exception says, without the backtrace that LibTorch appends, on one line.
std::string reason_of(const std::exception& failure);

}  // namespace adjoin::train
