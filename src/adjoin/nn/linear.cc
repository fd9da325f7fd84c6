#include "adjoin/nn/linear.h"

#include "adjoin/nn/autograd.h"
#include "adjoin/tensor/device.h"

namespace adjoin::nn {
namespace {

/// The one matrix that a view with an axis of groups stands for.
torch::Tensor matrix_of(const Weights& weights, const std::string& name, int64_t in_features) {
  const torch::Tensor& weight = weights.at(name);
  if (weight.dim() == 2) return weight;
  return weight.size(2) == in_features ? weight.flatten(0, 1) : weight.flatten(1, 2);
}

#if ADJOIN_TORCH >= 20800

/// A product of bfloat16 values whose gradient for the weights is summed, and comes, in float32:
/// autocast would round it to bfloat16 first and take two steps more.
class NarrowLinear : public torch::autograd::Function<NarrowLinear> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, const torch::Tensor& x,
                               const torch::Tensor& weight,
                               const TorchOptional<torch::Tensor>& bias) {
    const auto narrow_weight = weight.to(torch::kBFloat16);
    ctx->save_for_backward({x, weight, or_undefined(bias), narrow_weight});
    return torch::linear(x, narrow_weight, bias ? bias->to(torch::kBFloat16) : torch::Tensor());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grad_outputs) {
    const auto saved = ctx->get_saved_variables();
    const torch::Tensor &x = saved[0], &weight = saved[1], &bias = saved[2];
    const torch::Tensor& grad = grad_outputs[0];
    if (torch::GradMode::is_enabled()) {  // the gradient itself will be differentiated
      const Autocast autocast(x.device(), true);
      return differentiable_gradients(torch::linear(x, weight, bias), {x, weight, bias}, grad);
    }
    const auto rows = grad.flatten(0, -2);
    torch::autograd::variable_list grads(3);
    if (ctx->needs_input_grad(0)) grads[0] = grad.matmul(saved[3]);
    if (ctx->needs_input_grad(1)) {
      grads[1] = at::mm(rows.t(), x.flatten(0, -2), torch::kFloat32);
    }
    if (bias.defined() && ctx->needs_input_grad(2)) {
      grads[2] = rows.sum(at::IntArrayRef{0}, /*keepdim=*/false, torch::kFloat32);
    }
    return grads;
  }
};

#endif

torch::Tensor affine(const torch::Tensor& x, const torch::Tensor& weight,
                     const torch::Tensor& bias) {
#if ADJOIN_TORCH >= 20800
  if (x.is_cuda() && is_autocast_on(x.device()) && weight.scalar_type() == torch::kFloat32) {
    return NarrowLinear::apply(x.to(torch::kBFloat16), weight, optional(bias));
  }
#endif
  return torch::linear(x, weight, bias);
}

}  // namespace

torch::Tensor vector_of(const Weights& weights, const std::string& name) {
  const torch::Tensor vector = weights.find(name);
  return vector.defined() && vector.dim() > 1 ? vector.flatten() : vector;
}

torch::Tensor linear(const Weights& weights, const std::string& prefix, const torch::Tensor& x) {
  return affine(x, matrix_of(weights, prefix + "weight", x.size(-1)),
                vector_of(weights, prefix + "bias"));
}

torch::Tensor product(const Weights& weights, const std::string& prefix, const torch::Tensor& x) {
  return affine(x, matrix_of(weights, prefix + "weight", x.size(-1)), {});
}

torch::Tensor linear_of_constant_bias(const Weights& weights, const std::string& prefix,
                                      const torch::Tensor& x) {
  const auto bias = vector_of(weights, prefix + "bias");
  return affine(x, matrix_of(weights, prefix + "weight", x.size(-1)),
                bias.defined() ? bias.detach() : bias);
}

torch::Tensor layer_norm(const Weights& weights, const std::string& prefix, const torch::Tensor& x,
                         double eps, const Context& context) {
  if (!context.has_norms) return x;
  const auto weight = vector_of(weights, prefix + "weight");
  // Autocast hands over bfloat16; statistics and the residual stream stay as wide as the weights.
  return torch::layer_norm(x.to(weight.scalar_type()), {weight.size(0)}, weight,
                           vector_of(weights, prefix + "bias"), eps);
}

}  // namespace adjoin::nn
