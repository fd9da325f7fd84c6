#pragma once

// The one door to LibTorch, and the precompiled header. ivalue.h must come first: without it the
// LibTorch 1.13 headers do not compile as C++20 under clang (constexpr vector of incomplete
// IValue).
#include <ATen/core/ivalue.h>
//
#include <torch/torch.h>

/// 11300 for 1.13.0, 21100 for 2.11.0: to tell apart what the versions call differently.
#define ADJOIN_TORCH (TORCH_VERSION_MAJOR * 10000 + TORCH_VERSION_MINOR * 100)

namespace adjoin {

/// The optional that LibTorch's functions take: its own until 2.4, std's since.
#if ADJOIN_TORCH >= 20400
template <class T>
using TorchOptional = std::optional<T>;
#else
template <class T>
using TorchOptional = c10::optional<T>;
#endif

}  // namespace adjoin
