#include "adjoin/train/trainer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include "adjoin/core/error.h"
#include "adjoin/core/rng.h"
#include "adjoin/tensor/device.h"

namespace adjoin::train {
namespace {

enum Sum { kLoss, kCorrect, kNorm, kSteps, kImages, kSums };

constexpr uint64_t kStepStream = 0x73746570;  // tells dropout's numbers from those of the data

torch::Generator generator_for(torch::Device device) {
  if (device.is_cpu()) return at::detail::createCPUGenerator();
  return at::globalContext().defaultGenerator(device).clone();
}

[[noreturn]] void throw_not_finite(int64_t step) {
  throw Error(ErrorKind::kNumeric,
              fmt::format("step {}: the loss or a gradient is NaN or infinite; try a lower --lr, a "
                          "longer --warmup-epochs or --clip-grad 1",
                          step + 1));
}

/// Rows begin to end - 1 of a batch, the images in a type.
data::Batch part_of(const data::Batch& batch, int64_t begin, int64_t end, torch::ScalarType type) {
  const auto rows = [&](const torch::Tensor& t) { return t.narrow(0, begin, end - begin); };
  return {rows(batch.images).to(type), rows(batch.labels), rows(batch.targets), {}};
}

}  // namespace

Trainer::Trainer(const ModelSpec& spec, const Weights& start, const TrainConfig& config,
                 const Objective& objective, const Compute& compute, Group& group)
    : spec_(spec),
      config_(config),
      objective_(objective),
      compute_(compute),
      group_(group),
      parameters_(spec, start, compute.device, compute.weight_type(), config.optimizer.layer_decay),
      optimizer_(config.optimizer, parameters_),
      buckets_(group, parameters_.leaves(), parameters_.gradients()),
      rng_(generator_for(compute.device)) {
  const auto options = torch::TensorOptions().device(compute.device);
  sums_ = torch::zeros(kSums, options.dtype(torch::kFloat64));
  first_bad_ = torch::full({}, -1, options.dtype(torch::kInt64));
  for (const auto& [name, tensor] : parameters_.weights()) {
    if (!tensor.requires_grad()) group.broadcast(tensor);
  }
  group.broadcast(parameters_.values());
  if (config.model_ema) average_ = parameters_.values().clone();
}

void Trainer::step(const data::Batch& batch, int64_t images, int64_t step, double lr) {
  parameters_.gradients().zero_();
  backward(batch, images, step);
  buckets_.finish();
  const torch::NoGradGuard no_grad;
  const auto gradients = parameters_.gradients();
  const auto norm = gradients.norm();
  take_note(norm, step);
  if (config_.optimizer.clip_grad > 0) {
    gradients.mul_((config_.optimizer.clip_grad / (norm + 1e-6)).clamp_max(1.0));
  }
  optimizer_.step(lr);
  if (average_.defined()) average_.lerp_(parameters_.values(), 1 - config_.model_ema_decay);
}

void Trainer::backward(const data::Batch& batch, int64_t images, int64_t step) {
  const int64_t mine = batch.images.size(0);
  const int64_t parts = std::min(config_.grad_accum_steps, std::max<int64_t>(mine, 1));
  step_loss_ = torch::zeros({}, sums_.options());
  Branch network{spec_, parameters_.weights(), {}};
  network.context.is_training = true;
  network.context.dropout = config_.drop;
  network.context.is_recomputed = config_.grad_checkpointing;
  network.context.rng = rng_;
  network.context.constants = &constants_;
  for (int64_t i = 0; i < parts; ++i) {
    rng_.set_current_seed(
        stream_key(static_cast<uint64_t>(config_.seed),
                   {kStepStream, static_cast<uint64_t>(step), static_cast<uint64_t>(group_.rank()),
                    static_cast<uint64_t>(i)}));
    const data::Batch part =
        part_of(batch, mine * i / parts, mine * (i + 1) / parts, compute_.weight_type());
    const double share = static_cast<double>(part.images.size(0)) / static_cast<double>(images);
    Loss loss;
    {
      const Autocast autocast(compute_.device, compute_.has_autocast());
      loss = objective_(network, part);
    }
    if (i + 1 == parts) buckets_.begin();
    (loss.value * share).backward();
    const torch::NoGradGuard no_grad;
    step_loss_.add_(loss.value.detach(), share);
    sums_[kCorrect].add_((loss.logits.argmax(-1) == part.labels).sum());
  }
  sums_[kLoss].add_(step_loss_, static_cast<double>(images));
  sums_[kImages].add_(static_cast<double>(mine));
}

void Trainer::take_note(const torch::Tensor& norm, int64_t step) {
  if (group_.is_first()) {  // it is the same norm everywhere
    sums_[kNorm].add_(norm);
    sums_[kSteps].add_(1);
  }
  // The gradients are those of all processes: whatever a rank met, all of them see it here.
  const auto is_good = (step_loss_ + norm).isfinite();
  if (compute_.device.is_cpu()) {
    if (!is_good.item<bool>()) throw_not_finite(step);
  } else {
    const auto is_news = is_good.logical_not().logical_and_(first_bad_ < 0);
    first_bad_.masked_fill_(is_news, step);
  }
}

Metrics Trainer::read() {
  check_finite();
  group_.sum(sums_);
  const auto sums = sums_.cpu().clone();  // on a CPU the first is no copy
  sums_.zero_();
  const auto* s = sums.data_ptr<double>();
  Metrics metrics;
  metrics.images = static_cast<int64_t>(s[kImages]);
  if (metrics.images == 0) return metrics;
  metrics.loss = s[kLoss] / s[kImages];
  metrics.accuracy = 100 * s[kCorrect] / s[kImages];
  metrics.grad_norm = s[kNorm] / s[kSteps];
  return metrics;
}

void Trainer::check_finite() {
  const auto step = first_bad_.item<int64_t>();
  if (step >= 0) throw_not_finite(step);
  if (!parameters_.values().abs().max().isfinite().item<bool>()) {
    throw Error(ErrorKind::kNumeric,
                fmt::format("step {}: a weight is NaN or infinite; try a lower --lr",
                            optimizer_.steps_taken()));
  }
}

torch::Tensor Trainer::pending() const {
  auto sums = sums_.clone();
  group_.sum(sums);
  return sums.cpu();
}

void Trainer::set_pending(const torch::Tensor& sums) {
  sums_.zero_();
  if (group_.is_first()) sums_.copy_(sums);
}

Weights Trainer::judged_weights() const {
  return parameters_.weights_in(average_.defined() ? average_ : parameters_.values());
}

std::vector<std::pair<std::string, torch::Tensor>> Trainer::state() const {
  std::vector<std::pair<std::string, torch::Tensor>> result;
  const auto add = [&](const std::string& prefix, const torch::Tensor& flat) {
    const Weights views = parameters_.weights_in(flat);
    for (const auto& [name, tensor] : parameters_.weights()) {
      if (tensor.requires_grad()) result.emplace_back(prefix + name, views.at(name));
    }
  };
  for (const auto& [name, tensor] : parameters_.weights()) {
    if (!tensor.requires_grad()) result.emplace_back("model." + name, tensor);
  }
  add("model.", parameters_.values());
  if (average_.defined()) add("model_ema.", average_);
  for (const auto& [name, flat] : optimizer_.state()) add("optimizer." + name + ".", flat);
  return result;
}

}  // namespace adjoin::train
