#include "adjoin/train/memory_advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "adjoin/core/error.h"
#include "adjoin/tensor/device.h"

namespace adjoin::train {
namespace {

std::string out_of_memory(const TrainConfig& config) {
  if (config.batch_size == 1) return "out of memory with batch size 1; try --grad-checkpointing";
  return fmt::format(
      "out of memory with batch size {}; try --batch-size {}, or --grad-accum-steps {} for the "
      "same steps in smaller parts",
      config.batch_size, config.batch_size / 2,
      std::min(config.grad_accum_steps * 2, config.batch_size));
}

}  // namespace

void with_memory_advice(const TrainConfig& config, const std::function<void()>& act) {
  try {
    act();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    if (!is_out_of_memory(e)) throw;
    throw Error(ErrorKind::kMemory, out_of_memory(config));
  }
}

}  // namespace adjoin::train
