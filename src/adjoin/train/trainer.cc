#include "adjoin/train/trainer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include "adjoin/core/error.h"
#include "adjoin/core/rng.h"
#include "adjoin/tensor/device.h"

namespace adjoin::train {
namespace {

/// Places in the sums; the correct answers of each network follow, then the terms of the loss.
enum Sum { kLoss, kNorm, kSteps, kImages, kCorrect };

/// Libraries choose their algorithms, and make what they keep, in the first steps.
constexpr int64_t kStepsBeforeRecording = 3;

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

Trainer::Trainer(const Networks& networks, const TrainConfig& config, const Objective& objective,
                 const Compute& compute, Group& group)
    : specs_({networks.spec}),
      config_(config),
      objective_(objective),
      compute_(compute),
      group_(group),
      parameters_(networks.spec, networks.start, networks.inner, compute.device,
                  compute.weight_type(), config.optimizer.layer_decay),
      optimizer_(config.optimizer, parameters_),
      buckets_(group, parameters_.leaves(), parameters_.gradients()),
      rng_(generator_for(compute.device)),
      stream_(compute.device) {
  for (const InnerNetwork& inner : networks.inner) specs_.push_back(inner.derived.spec);
  const auto options = torch::TensorOptions().device(compute.device);
  const auto sums = kCorrect + static_cast<int64_t>(specs_.size() + objective.terms().size());
  sums_ = torch::zeros(sums, options.dtype(torch::kFloat64));
  first_bad_ = torch::full({}, -1, options.dtype(torch::kInt64));
  step_ = torch::zeros({}, options.dtype(torch::kInt64));
  time_ = torch::zeros({}, options.dtype(torch::kFloat64));
  for (const auto& [name, tensor] : parameters_.fixed()) group.broadcast(tensor);
  group.broadcast(parameters_.values());
  if (config.model_ema) average_ = parameters_.values().clone();
  nn::Context context;
  context.is_training = true;
  context.dropout = config_.drop;
  context.is_recomputed = config_.grad_checkpointing;
  context.rng = rng_;
  context.constants = &constants_;
  for (size_t i = 0; i < specs_.size(); ++i) {
    branches_.push_back({specs_[i], parameters_.weights(i), context,
                         i > 0 && has_whole_embedding(networks.inner[i - 1].derived)});
  }
}

void Trainer::step(const data::Batch& batch, const StepInfo& info) {
  const StreamScope scope(stream_);
  optimizer_.begin_step(info.lr);
  step_.fill_(info.step);
  time_.fill_(info.time);
  set_seed(info.step, 0);
  if (is_recordable(batch)) {
    replay(batch, info.images);
  } else {
    compute_step(batch, info.images, info.step);
  }
}

/// Random numbers are a function of step, process and part of the batch.
void Trainer::set_seed(int64_t step, int64_t part) {
  rng_.set_current_seed(
      stream_key(static_cast<uint64_t>(config_.seed),
                 {kStepStream, static_cast<uint64_t>(step), static_cast<uint64_t>(group_.rank()),
                  static_cast<uint64_t>(part)}));
}

bool Trainer::is_recordable(const data::Batch& batch) const {
  if (!Recording::is_possible(compute_.device) || !config_.cuda_graph) return false;
  const bool is_one_piece =
      group_.size() == 1 && config_.grad_accum_steps == 1 && !config_.grad_checkpointing;
  // A batch of another size is computed as it comes.
  return is_one_piece && (!held_.images.defined() || held_.images.sizes() == batch.images.sizes());
}

void Trainer::replay(const data::Batch& batch, int64_t images) {
  if (!held_.images.defined()) {
    const auto room = [](const torch::Tensor& t) { return torch::empty_like(t); };
    held_ = {room(batch.images), room(batch.labels), room(batch.targets), {}};
  }
  held_.images.copy_(batch.images);
  held_.labels.copy_(batch.labels);
  held_.targets.copy_(batch.targets);
  if (++steps_alike_ <= kStepsBeforeRecording) return compute_step(held_, images, 0);
  if (!recording_.is_recorded()) {
    recording_.record(rng_, [&] { compute_step(held_, images, 0); });
  }
  recording_.replay();
}

void Trainer::compute_step(const data::Batch& batch, int64_t images, int64_t step) {
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
  optimizer_.update();
  if (average_.defined()) average_.lerp_(parameters_.values(), 1 - config_.model_ema_decay);
}

void Trainer::backward(const data::Batch& batch, int64_t images, int64_t step) {
  const int64_t mine = batch.images.size(0);
  const int64_t parts = std::min(config_.grad_accum_steps, std::max<int64_t>(mine, 1));
  step_loss_ = torch::zeros({}, sums_.options());
  for (int64_t i = 0; i < parts; ++i) {
    if (i > 0) set_seed(step, i);
    const data::Batch part =
        part_of(batch, mine * i / parts, mine * (i + 1) / parts, compute_.weight_type());
    const double share = static_cast<double>(part.images.size(0)) / static_cast<double>(images);
    Loss loss;
    {
      const Autocast autocast(compute_.device, compute_.has_autocast());
      loss = objective_(branches_, part, time_);
    }
    if (i + 1 == parts) buckets_.begin();
    (loss.value * share).backward();
    const torch::NoGradGuard no_grad;
    step_loss_.add_(loss.value.detach(), share);
    int64_t next = kCorrect;
    for (const torch::Tensor& logits : loss.logits) {
      sums_[next++].add_((logits.argmax(-1) == part.labels).sum());
    }
    next = kCorrect + static_cast<int64_t>(specs_.size());
    for (const torch::Tensor& term : loss.terms) {
      sums_[next++].add_(term.detach(), static_cast<double>(part.images.size(0)));
    }
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
    first_bad_.copy_(torch::where(is_news, step_, first_bad_));
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
  const auto networks = static_cast<int64_t>(specs_.size());
  for (int64_t i = kCorrect; i < sums.size(0); ++i) {
    const double mean = s[i] / s[kImages];
    const bool is_accuracy = i < kCorrect + networks;
    (is_accuracy ? metrics.accuracy : metrics.terms).push_back(is_accuracy ? 100 * mean : mean);
  }
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

Weights Trainer::judged_weights(size_t network) const {
  return parameters_.weights_in(average_.defined() ? average_ : parameters_.values(), network);
}

NamedTensors Trainer::state() const {
  NamedTensors result;
  const auto add = [&](const std::string& prefix, const NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) result.emplace_back(prefix + name, tensor);
  };
  add("model.", parameters_.fixed());
  add("model.", parameters_.tensors_in(parameters_.values()));
  if (average_.defined()) add("model_ema.", parameters_.tensors_in(average_));
  for (const auto& [name, flat] : optimizer_.state()) {
    add("optimizer." + name + ".", parameters_.tensors_in(flat));
  }
  return result;
}

}  // namespace adjoin::train
