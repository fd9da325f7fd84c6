#pragma once

// What moves tensors between processes, behind a border that LibTorch versions and builds do not
// cross: one file per backend, each compiled to "not there" where its headers are missing.

#include <chrono>
#include <memory>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "adjoin/tensor/torch.h"
#include "adjoin/train/launch.h"

namespace adjoin::train {

class Backend {
 public:
  virtual ~Backend() = default;

  /// Where tensors must lie.
  virtual torch::Device device() const = 0;

  /// A contiguous tensor, in place.
  virtual c10::intrusive_ptr<c10d::Work> start_sum(torch::Tensor tensor) = 0;
  virtual c10::intrusive_ptr<c10d::Work> start_broadcast(torch::Tensor tensor) = 0;

  /// Returns when the tensor is there, throws whatever c10d throws when a peer fails or is silent
  /// for longer than the timeout.
  virtual void wait(c10d::Work& work) = 0;
};

struct BackendOptions {
  const Launch* launch = nullptr;
  c10::intrusive_ptr<c10d::Store> store;
  std::chrono::milliseconds timeout{};
  torch::Device device = torch::kCPU;
};

bool has_gloo();
std::shared_ptr<Backend> make_gloo(const BackendOptions& options);

bool has_nccl();
std::shared_ptr<Backend> make_nccl(const BackendOptions& options);

}  // namespace adjoin::train
