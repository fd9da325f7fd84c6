#pragma once

#include <functional>

#include "adjoin/train/config.h"

namespace adjoin::train {

/// Calls `act`; when memory runs out, an Error(kMemory) with a batch size to try.
void with_memory_advice(const TrainConfig& config, const std::function<void()>& act);

}  // namespace adjoin::train
