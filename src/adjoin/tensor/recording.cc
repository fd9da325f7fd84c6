#include "adjoin/tensor/recording.h"

#include "adjoin/core/error.h"

#if ADJOIN_HAS_CUDA && ADJOIN_TORCH >= 20300
#define ADJOIN_HAS_RECORDING 1
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace adjoin {

#if ADJOIN_HAS_RECORDING

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
  } catch (...) {
    try {
      made->graph.capture_end();
    } catch (const std::exception&) {  // it says again that there was a failure
    }
    throw;
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
  impl_ = std::make_unique<Impl>(
      Impl{side, at::cuda::getCurrentCUDAStream(side.stream.device_index())});
  side.event.record(impl_->before);
  side.event.block(side.stream);
  at::cuda::setCurrentCUDAStream(side.stream);
}

StreamScope::~StreamScope() {
  if (!impl_) return;
  impl_->side.event.record(impl_->side.stream);
  impl_->side.event.block(impl_->before);
  at::cuda::setCurrentCUDAStream(impl_->before);
}

#else

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
