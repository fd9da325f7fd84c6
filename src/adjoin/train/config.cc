#include "adjoin/train/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "adjoin/core/hash.h"

namespace adjoin::train {
namespace {

void check_pair(const char* name, const std::vector<double>& values, bool is_ordered) {
  if (values.size() != 2 || (is_ordered && values[0] > values[1])) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{}: must be two numbers{}", name, is_ordered ? ", least first" : ""));
  }
}

}  // namespace

bool is_free_to_change(std::string_view field) {
  constexpr auto kFree = std::to_array<std::string_view>(
      {"data", "search_data", "from", "teacher", "device", "workers", "log_interval",
       "checkpoint_interval", "inspect_interval", "max_bad_images", "grad_accum_steps",
       "grad_checkpointing", "cuda_graph"});
  return std::find(kFree.begin(), kFree.end(), field) != kFree.end();
}

void check(const TrainConfig& config) {
  const auto refuse = [](const std::string& message) { throw Error(ErrorKind::kConfig, message); };
  if (config.model.empty() && config.from.empty()) {
    refuse("model: is missing; name a model of the catalog with --model, or a file with --from");
  }
  if (config.data.empty()) refuse("data: is missing; say what to learn from with --data");
  check_pair("scale", config.augment.scale, true);
  check_pair("ratio", config.augment.ratio, true);
  check_pair("opt_betas", config.optimizer.opt_betas, false);
  const bool has_teacher = !config.teacher.empty();
  if (has_teacher && config.distillation == DistillationKind::kNone) {
    refuse("teacher: is given, but distillation is none; choose soft, hard or mse");
  }
  if (!has_teacher && config.distillation != DistillationKind::kNone) {
    refuse(fmt::format("distillation: is {}, but no --teacher FILE is given",
                       enum_name(config.distillation)));
  }
  if (config.batch_size < config.grad_accum_steps) {
    refuse(fmt::format("grad_accum_steps: is {}, more than the batch size {}",
                       config.grad_accum_steps, config.batch_size));
  }
  if (config.schedule.sched == ScheduleKind::kCosine &&
      config.schedule.min_lr > config.optimizer.lr) {
    refuse(fmt::format("min_lr: is {}, above lr {}", config.schedule.min_lr, config.optimizer.lr));
  }
}

std::string recipe_hash(const Json& config) {
  Json kept;
  for (const auto& [key, value] : config.items()) {
    if (!is_free_to_change(key)) kept[key] = value;
  }
  return fmt::format("fnv1a:{:016x}", fnv1a(kept.dump()));
}

}  // namespace adjoin::train
