#include "adjoin/train/optimizer.h"

#include <cmath>

#include "adjoin/train/adamw_kernel.h"

namespace adjoin::train {
namespace {

constexpr int64_t kGrain = 1 << 14;  // numbers per task: 64 KiB of each vector

}  // namespace

Optimizer::Optimizer(const OptimizerOptions& options, const Parameters& parameters)
    : options_(options), parameters_(parameters) {
  const auto number = parameters.values().options().dtype(torch::kFloat32);
  first_ = torch::zeros_like(parameters.values());
  rate_ = torch::zeros({}, number);
  count_ = torch::zeros({}, number);
  if (options.opt == OptimizerKind::kAdamW) second_ = torch::zeros_like(parameters.values());
}

std::map<std::string, torch::Tensor> Optimizer::state() const {
  if (options_.opt == OptimizerKind::kSgd) return {{"momentum", first_}};
  return {{"exp_avg", first_}, {"exp_avg_sq", second_}};
}

void Optimizer::step(double lr) {
  begin_step(lr);
  update();
}

void Optimizer::begin_step(double lr) {
  lr_ = lr;
  ++steps_taken_;
  rate_.fill_(lr);
  count_.fill_(steps_taken_);
}

void Optimizer::update() {
  const torch::NoGradGuard no_grad;
  for (const ParameterGroup& group : parameters_.groups()) {
    if (options_.opt == OptimizerKind::kAdamW) {
      adamw(group);
    } else {
      sgd(group);
    }
  }
}

void Optimizer::adamw(const ParameterGroup& group) {
  const double lr = lr_ * group.lr_scale;
  const int64_t length = group.end - group.begin;
  const auto part = [&](const torch::Tensor& flat) { return flat.narrow(0, group.begin, length); };
  const double decay = group.has_decay ? options_.weight_decay : 0;
  const double beta1 = options_.opt_betas[0];
  const double beta2 = options_.opt_betas[1];
  const auto values = part(parameters_.values());
  const auto gradients = part(parameters_.gradients());
  const auto first = part(first_);
  const auto second = part(second_);
  const auto t = static_cast<double>(steps_taken_);
  const AdamWStep s{1 - lr * decay,
                    beta1,
                    beta2,
                    lr / (1 - std::pow(beta1, t)),
                    std::sqrt(1 - std::pow(beta2, t)),
                    options_.opt_eps};
  if (values.is_cpu()) {
    AT_DISPATCH_FLOATING_TYPES(values.scalar_type(), "adamw", [&] {
      const AdamWVectors<scalar_t> vectors{values.data_ptr<scalar_t>(),
                                           gradients.data_ptr<scalar_t>(),
                                           first.data_ptr<scalar_t>(), second.data_ptr<scalar_t>()};
      at::parallel_for(0, length, kGrain,
                       [&](int64_t begin, int64_t end) { train::adamw(vectors, begin, end, s); });
    });
    return;
  }
#if ADJOIN_TORCH >= 20100
  at::_fused_adamw_({values}, {gradients}, {first}, {second}, {}, {count_},
                    group.lr_scale == 1 ? rate_ : rate_ * group.lr_scale, beta1, beta2, decay,
                    options_.opt_eps, /*amsgrad=*/false, /*maximize=*/false);
#else
  values.mul_(s.decay);
  first.lerp_(gradients, 1 - beta1);
  second.mul_(beta2).addcmul_(gradients, gradients, 1 - beta2);
  values.addcdiv_(first, second.sqrt().div_(s.root).add_(s.eps), -s.step_size);
#endif
}

void Optimizer::sgd(const ParameterGroup& group) {
  const int64_t length = group.end - group.begin;
  const auto part = [&](const torch::Tensor& flat) { return flat.narrow(0, group.begin, length); };
  const auto values = part(parameters_.values());
  auto direction = part(parameters_.gradients());
  if (group.has_decay && options_.weight_decay > 0) {
    direction = direction.add(values, options_.weight_decay);
  }
  if (options_.momentum > 0) {
    const auto momentum = part(first_);
    momentum.mul_(options_.momentum).add_(direction);  // it begins as zero
    direction = direction.add(momentum, options_.momentum);
  }
  if (values.is_cpu()) {
    values.add_(direction, -lr_ * group.lr_scale);
  } else {
    values.sub_(direction * (rate_ * group.lr_scale));
  }
}

}  // namespace adjoin::train
