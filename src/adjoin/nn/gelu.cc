#include "adjoin/nn/gelu.h"

#include <c10/core/DeviceGuard.h>

#include "adjoin/nn/autograd.h"
#include "adjoin/nn/kernels/columns.h"
#include "adjoin/nn/kernels/dispatch.h"
#include "adjoin/nn/linear.h"

namespace adjoin::nn {
namespace {

/// On a GPU: gelu(x + bias), and the gradient of the bias on the way back.
class BiasGelu : public torch::autograd::Function<BiasGelu> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, const torch::Tensor& x,
                               const torch::Tensor& bias) {
    ctx->save_for_backward({x, bias});
    auto out = torch::empty_like(x);
    for_types(x.scalar_type(), [&]<class S, class V>() {
      if constexpr (kHasCuda) {
        bias_gelu_on_gpu(data<V>(x), data<S>(bias), data<V>(out), x.numel() / bias.numel(),
                         bias.numel(), current_stream(x.device()));
      }
    });
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grad_outputs) {
    const auto saved = ctx->get_saved_variables();
    const torch::Tensor &x = saved[0], &bias = saved[1];
    if (torch::GradMode::is_enabled()) {  // the gradient itself will be differentiated
      return differentiable_gradients(torch::gelu(x + bias.to(x.scalar_type())), {x, bias},
                                      grad_outputs[0]);
    }
    const auto grad = grad_outputs[0].contiguous();
    const int64_t width = bias.numel();
    const int64_t rows = x.numel() / width;
    auto grad_x = torch::empty_like(x);
    auto sums = torch::empty_like(bias);
    for_types(x.scalar_type(), [&]<class S, class V>() {
      if constexpr (kHasCuda) {
        const auto parts = torch::empty({column_parts(rows, width), width}, bias.options());
        bias_gelu_backward_on_gpu(data<V>(grad), data<V>(x), data<S>(bias), data<V>(grad_x), rows,
                                  width, data<S>(parts), data<S>(sums), current_stream(x.device()));
      }
    });
    return {grad_x, sums};
  }
};

}  // namespace

torch::Tensor linear_gelu(const Weights& weights, const std::string& prefix,
                          const torch::Tensor& x) {
  const auto bias = vector_of(weights, prefix + "bias");
  if (!x.is_cuda() || !bias.defined()) return torch::gelu(linear(weights, prefix, x));
  const auto hidden = product(weights, prefix, x);
  if (!is_known_type(hidden.scalar_type(), bias.scalar_type()) || hidden.numel() == 0) {
    return torch::gelu(hidden + bias.to(hidden.scalar_type()));
  }
  const c10::OptionalDeviceGuard guard(x.device());
  return BiasGelu::apply(hidden.contiguous(), bias.contiguous());
}

}  // namespace adjoin::nn
