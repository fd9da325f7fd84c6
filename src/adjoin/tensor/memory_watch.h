#pragma once

// How much memory tensors on the CPU take, at most at one moment.

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "adjoin/tensor/torch.h"

namespace adjoin {

/// Counts all that LibTorch allocates on the CPU while one lives. One at a time.
class MemoryWatch {
 public:
  MemoryWatch() : before_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(counting(), kPriority); }
  ~MemoryWatch() { c10::SetCPUAllocator(before_, kPriority); }
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  /// The peak is counted from here, above what is taken now.
  void reset() {
    base_ = current_.load();
    peak_ = base_;
  }
  int64_t peak() const { return peak_ - base_; }

 private:
  static constexpr uint8_t kPriority = 200;
  static constexpr size_t kRoom = 64;

  /// For good: tensors made meanwhile may live longer than the watch.
  class Counting : public c10::Allocator {
   public:
#if ADJOIN_TORCH >= 20300
    c10::DataPtr allocate(size_t bytes) override { return take(bytes); }
    void copy_data(void* to, const void* from, size_t bytes) const override {
      default_copy_data(to, from, bytes);
    }
#else
    c10::DataPtr allocate(size_t bytes) const override { return take(bytes); }
#endif
    c10::DeleterFnPtr raw_deleter() const override { return &release; }
  };

  static Counting* counting() {
    static Counting one;
    return &one;
  }

  static c10::DataPtr take(size_t bytes) {
    // The size stands before the data: LibTorch wants the data's own address back.
    auto* block =
        static_cast<char*>(std::aligned_alloc(kRoom, (bytes + 2 * kRoom - 1) / kRoom * kRoom));
    if (block == nullptr) throw std::bad_alloc();
    *reinterpret_cast<int64_t*>(block) = static_cast<int64_t>(bytes);
    const int64_t now = current_ += static_cast<int64_t>(bytes);
    for (int64_t most = peak_; now > most && !peak_.compare_exchange_weak(most, now);) {
    }
    return {block + kRoom, block + kRoom, &release, torch::Device(torch::kCPU)};
  }

  static void release(void* data) {
    auto* block = static_cast<char*>(data) - kRoom;
    current_ -= *reinterpret_cast<int64_t*>(block);
    std::free(block);
  }

  c10::Allocator* before_;
  int64_t base_ = 0;
  static inline std::atomic<int64_t> current_ = 0;
  static inline std::atomic<int64_t> peak_ = 0;
};

}  // namespace adjoin
