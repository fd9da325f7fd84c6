#include "adjoin/nn/recompute.h"

#include <mutex>

#include "adjoin/tensor/device.h"

namespace adjoin::nn {
namespace {

/// What the second time needs, kept by the node of the autograd graph.
struct Call : torch::CustomClassHolder {
  std::function<torch::Tensor(const torch::Tensor&)> f;
  TorchOptional<torch::Generator> rng;
  torch::Tensor rng_state;
  bool has_autocast = false;
};

struct Recompute : torch::autograd::Function<Recompute> {
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, const torch::Tensor& x,
                               const c10::intrusive_ptr<Call>& call) {
    ctx->save_for_backward({x});
    ctx->saved_data["call"] = c10::IValue::make_capsule(call);
    const torch::NoGradGuard no_grad;
    return call->f(x);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list gradients) {
    const auto capsule = ctx->saved_data["call"].toCapsule();
    const auto& call = static_cast<const Call&>(*capsule);
    const auto x = ctx->get_saved_variables()[0].detach().requires_grad_(true);
    if (call.rng) {
      auto generator = *call.rng;
      const std::lock_guard lock(generator.mutex());
      generator.set_state(call.rng_state);
    }
    torch::Tensor y;
    {
      const torch::AutoGradMode with_grad(true);
      const Autocast autocast(x.device(), call.has_autocast);
      y = call.f(x);
    }
    torch::autograd::backward({y}, {gradients[0]});
    return {x.grad(), torch::Tensor()};
  }
};

}  // namespace

torch::Tensor recomputed(std::function<torch::Tensor(const torch::Tensor&)> f,
                         const torch::Tensor& x, const Context& context) {
  if (!torch::GradMode::is_enabled()) return f(x);
  auto call = c10::make_intrusive<Call>();
  call->f = std::move(f);
  call->rng = context.rng;
  if (context.rng) {
    auto generator = *context.rng;
    const std::lock_guard lock(generator.mutex());
    call->rng_state = generator.get_state();
  }
  call->has_autocast = is_autocast_on(x.device());
  // Only what takes part in a gradient gets a node: the first block's input may not.
  return Recompute::apply(x.requires_grad() ? x : x.detach().requires_grad_(true), call);
}

}  // namespace adjoin::nn
