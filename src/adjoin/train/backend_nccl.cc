// ADJOIN_HAS_NCCL comes from CMake: a CUDA build of LibTorch 2 and nccl.h. Calls as of 2.11.
#include "adjoin/core/error.h"
#include "adjoin/train/backend.h"

#ifdef ADJOIN_HAS_NCCL
#ifndef USE_C10D_NCCL
#define USE_C10D_NCCL  // the header is empty without it
#endif
#include <atomic>
#include <cstdlib>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

namespace adjoin::train {

#ifdef ADJOIN_HAS_NCCL

namespace {

using c10d::ProcessGroupNCCL;

class NcclBackend : public Backend {
 private:
  /// Remembers a failure. First, because its type follows from its body.
  template <class Act>
  auto guarded(Act act) {
    try {
      return act();
    } catch (...) {
      has_failed_ = true;
      throw;
    }
  }

 public:
  NcclBackend(c10::intrusive_ptr<ProcessGroupNCCL> group, const BackendOptions& options)
      : group_(std::move(group)), device_(options.device), timeout_(options.timeout) {}

  /// A normal end waits for the peers; with one that is gone it would wait for good.
  ~NcclBackend() override {
    try {
      if (has_failed_) {
        group_->abort();
      } else {
        group_->shutdown();
      }
    } catch (const std::exception&) {
      // The process is about to end, and has said why.
    }
  }

  torch::Device device() const override { return device_; }

  c10::intrusive_ptr<c10d::Work> start_sum(torch::Tensor tensor) override {
    std::vector<at::Tensor> tensors = {std::move(tensor)};
    return guarded([&] { return group_->allreduce(tensors); });
  }

  c10::intrusive_ptr<c10d::Work> start_broadcast(torch::Tensor tensor) override {
    std::vector<at::Tensor> tensors = {std::move(tensor)};
    return guarded([&] { return group_->broadcast(tensors); });
  }

  /// WorkNCCL::wait() alone only orders streams: the host would run on and hang in the next copy
  /// from the GPU, where no error can be raised. So the host looks itself until the work is done.
  void wait(c10d::Work& work) override {
    guarded([&] {
      const auto deadline = std::chrono::steady_clock::now() + timeout_;
      while (!work.isCompleted() && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
      // Not done: this has waited longer than allowed, aborts the communicator and throws.
      return work.wait(timeout_);
    });
  }

 private:
  c10::intrusive_ptr<ProcessGroupNCCL> group_;
  torch::Device device_;
  std::chrono::milliseconds timeout_;
  std::atomic<bool> has_failed_{false};
};

}  // namespace

bool has_nccl() { return true; }

std::shared_ptr<Backend> make_nccl(const BackendOptions& options) {
  // By default LibTorch's watchdog ends the process when a peer fails, with a page of traces.
  // wait() finds the failure itself; a user's own setting stays.
  setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", /*overwrite=*/0);
  auto nccl = ProcessGroupNCCL::Options::create();
  nccl->timeout = options.timeout * 2;  // the watchdog shall not be the first to find it
  return std::make_shared<NcclBackend>(
      c10::make_intrusive<ProcessGroupNCCL>(options.store, options.launch->rank,
                                            options.launch->size, nccl),
      options);
}

#else

bool has_nccl() { return false; }

std::shared_ptr<Backend> make_nccl(const BackendOptions&) {
  throw Error(ErrorKind::kInternal, "this build has no NCCL");
}

#endif

}  // namespace adjoin::train
