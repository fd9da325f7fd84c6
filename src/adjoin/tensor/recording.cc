#include "adjoin/tensor/recording.h"

#include "adjoin/core/error.h"
#include "adjoin/tensor/device.h"

#ifdef ADJOIN_HAS_CUDA
#if ADJOIN_TORCH < 20400
#error "with CUDA, LibTorch 2.4 or later is needed"
#endif
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace adjoin {

#ifdef ADJOIN_HAS_CUDA

void* current_stream(torch::Device device) {
  return at::cuda::getCurrentCUDAStream(device.index()).stream();
}

struct Recording::Impl {
  at::cuda::CUDAGraph graph;
};

struct SideStream::Impl {
  at::cuda::CUDAStream stream;
  at::cuda::CUDAEvent event;
};

struct StreamScope::Impl {
  SideStream::Impl& side;
  at::cuda::CUDAStream before;
  c10::cuda::CUDAStreamGuard guard;  // also chooses the device
};

bool Recording::is_possible(torch::Device device) { return device.is_cuda(); }

void Recording::record(const torch::Generator& rng, const std::function<void()>& act) {
  auto made = std::make_unique<Impl>();
  // What earlier runs of `act` left in the cache cannot be used by the recording.
  torch::cuda::synchronize();
  c10::cuda::CUDACachingAllocator::emptyCache();
  made->graph.register_generator_state(rng);
  // Other threads may copy data meanwhile.
  made->graph.capture_begin(/*pool=*/{0, 0}, cudaStreamCaptureModeThreadLocal);
  try {
    act();
  } catch (const std::exception& e) {
    try {
      made->graph.capture_end();
    } catch (const std::exception&) {  // it says again that there was a failure
    }
    if (is_out_of_memory(e)) throw;
    const std::string what = e.what();
    throw Error(ErrorKind::kInternal, "the step cannot be recorded (" +
                                          what.substr(0, what.find('\n')) +
                                          "); try --no-cuda-graph");
  }
  made->graph.capture_end();
  impl_ = std::move(made);
}

void Recording::replay() { impl_->graph.replay(); }

SideStream::SideStream(torch::Device device) {
  if (!device.is_cuda()) return;
  impl_ = std::make_unique<Impl>(
      Impl{at::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index()), {}});
}

StreamScope::StreamScope(const SideStream& stream) {
  if (stream.impl() == nullptr) return;
  SideStream::Impl& side = *stream.impl();
  const auto before = at::cuda::getCurrentCUDAStream(side.stream.device_index());
  side.event.record(before);
  side.event.block(side.stream);
  impl_ = std::unique_ptr<Impl>(new Impl{side, before, c10::cuda::CUDAStreamGuard(side.stream)});
}

StreamScope::~StreamScope() {
  if (!impl_) return;
  try {
    impl_->side.event.record(impl_->side.stream);
    impl_->side.event.block(impl_->before);
  } catch (const std::exception&) {  // the device failed: the next operation says so, too
  }
}

#else

void* current_stream(torch::Device /*device*/) { return nullptr; }

struct Recording::Impl {};
struct SideStream::Impl {};
struct StreamScope::Impl {};

bool Recording::is_possible(torch::Device /*device*/) { return false; }

void Recording::record(const torch::Generator& /*rng*/, const std::function<void()>& /*act*/) {
  throw Error(ErrorKind::kInternal, "this build records nothing");
}

void Recording::replay() {}

SideStream::SideStream(torch::Device /*device*/) {}
StreamScope::StreamScope(const SideStream& /*stream*/) {}
StreamScope::~StreamScope() = default;

#endif

Recording::Recording() = default;
Recording::~Recording() = default;
SideStream::~SideStream() = default;

}  // namespace adjoin
