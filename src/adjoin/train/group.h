#pragma once

// The processes that train one network together (c10d: Gloo on CPUs, NCCL on GPUs). All of them
// make the same calls in the same order.
//
//   train::Group group = train::Group::join(train::launch_from_environment(), device);
//   group.sum(counts);             // the same sum on every rank
//
// Tensors are float32, float64 or int64, on any device. A process that lets the others wait for
// longer than the patience is given up: what rank 0 does alone must be shorter.

#include <chrono>
#include <memory>

#include "adjoin/tensor/torch.h"
#include "adjoin/train/launch.h"

namespace adjoin::train {

/// How long a process waits for others before it gives up.
struct Patience {
  std::chrono::milliseconds to_meet = std::chrono::seconds(60);    ///< at the start
  std::chrono::milliseconds to_answer = std::chrono::seconds(45);  ///< in each call after it
};

class Group {
 public:
  /// A process alone: every call returns at once.
  Group();

  /// Meets the others, once in the life of a process; alone when the launch has size 1. Error(kIo)
  /// in one sentence when they do not come in time or the port is taken, Error(kMissingPart) when
  /// this build lacks the backend for the device.
  static Group join(const Launch& launch, torch::Device device, const Patience& patience = {});

  /// Whether this build can join a group on such a device.
  static bool is_available(torch::Device device);

  ~Group();
  Group(Group&&) noexcept;
  Group& operator=(Group&&) noexcept;

  int rank() const;
  int size() const;
  bool is_first() const { return rank() == 0; }

  /// Sums over the ranks, in place, same bits on all. Error(kIo) "process 1 of 2 is gone .." when a
  /// rank died or did not answer in time; the group is of no more use then.
  void sum(const torch::Tensor& tensor);

  /// Rank 0's values on every rank.
  void broadcast(const torch::Tensor& tensor);

  void barrier();

  /// A sum under way. wait() returns when the tensor holds it, and throws as sum() does. The tensor
  /// must not be touched before. May outlive the group.
  class Pending {
   public:
    virtual ~Pending() = default;
    virtual void wait() = 0;
  };
  std::unique_ptr<Pending> start_sum(const torch::Tensor& tensor);

 private:
  struct Impl;
  class Transfer;
  explicit Group(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace adjoin::train
