#pragma once

// Operations on a GPU that are recorded once and then replayed by one call (a CUDA graph). The step
// of a small network takes the host longer to launch than the GPU to compute; a replay does not.
//
//   StreamScope scope(stream);                  // nothing is recorded on the default stream
//   Recording recording;
//   recording.record(rng, [&] { y = f(x); });   // nothing is computed yet
//   x.copy_(input);
//   recording.replay();                         // y has been computed from x

#include <functional>
#include <memory>

#include "adjoin/tensor/torch.h"

namespace adjoin {

/// Whether this build was made with CUDA, and so has kernels of our own for GPUs.
#ifdef ADJOIN_HAS_CUDA
inline constexpr bool kHasCuda = true;
#else
inline constexpr bool kHasCuda = false;
#endif

/// The stream of CUDA's that operations on a device now go to; null in a build without CUDA.
void* current_stream(torch::Device device);

class Recording {
 public:
  /// Whether this build and device can: LibTorch 2.4 or later on an NVIDIA GPU.
  static bool is_possible(torch::Device device);

  Recording();
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Keeps what `act` launches. Whatever it reads from the host becomes a constant, and its tensors
  /// stay where they are; run it a few times before, so that libraries have made their choices. A
  /// replay draws from the seed that `rng` has then. Error(kInternal) when something in `act`
  /// cannot be recorded.
  void record(const torch::Generator& rng, const std::function<void()>& act);
  bool is_recorded() const { return impl_ != nullptr; }
  void replay();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A queue of work on a GPU, apart from the default one; on a CPU nothing.
class SideStream {
 public:
  explicit SideStream(torch::Device device);
  ~SideStream();
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  struct Impl;
  Impl* impl() const { return impl_.get(); }

 private:
  std::unique_ptr<Impl> impl_;
};

/// Work of this thread goes to a side stream for the life of the object; it waits for what was
/// launched before, and what is launched later waits for it.
class StreamScope {
 public:
  explicit StreamScope(const SideStream& stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace adjoin
