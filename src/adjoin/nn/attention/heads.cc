#include "adjoin/nn/attention/heads.h"

#include <c10/core/DeviceGuard.h>

#include "adjoin/nn/autograd.h"
#include "adjoin/nn/kernels/columns.h"
#include "adjoin/nn/kernels/dispatch.h"
#include "adjoin/nn/linear.h"

namespace adjoin::nn {
namespace {

/// Strides of one of q, k, v, whose heads' values must be neighbours.
template <class V>
HeadsPart<V> part_of(const torch::Tensor& x) {
  return {data<V>(x), x.stride(0), x.stride(2), x.stride(1)};
}

/// On a GPU: views of qkv, whose gradients come back side by side in one pass, with their sums for
/// the bias that was added to qkv.
class SplitHeads : public torch::autograd::Function<SplitHeads> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* ctx,
                                                const torch::Tensor& qkv, const torch::Tensor& bias,
                                                int64_t heads) {
    ctx->set_materialize_grads(false);
    ctx->saved_data["options"] = bias.new_empty({0});
    return split_heads(qkv, heads);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    const auto like = ctx->saved_data["options"].toTensor();
    const auto shape = std::find_if(grads.begin(), grads.end(),
                                    [](const torch::Tensor& grad) { return grad.defined(); });
    if (shape == grads.end()) return {{}, {}, {}};
    const HeadsShape sizes{shape->size(0), shape->size(2), shape->size(1), shape->size(3)};
    const int64_t width = 3 * sizes.heads * sizes.dim;
    for (torch::Tensor& grad : grads) {
      if (!grad.defined()) grad = torch::zeros_like(*shape);
    }
    if (torch::GradMode::is_enabled()) {  // the gradient itself will be differentiated
      const auto joined = torch::stack(grads).permute({1, 3, 0, 2, 4}).flatten(2);
      return {joined, joined.flatten(0, 1).sum(0).to(like.scalar_type()), {}};
    }
    for (torch::Tensor& grad : grads) {
      if (grad.stride(3) != 1) grad = grad.contiguous();
    }
    auto joined = torch::empty({sizes.images, sizes.tokens, width}, shape->options());
    auto sums = torch::empty({width}, like.options());
    for_types(joined.scalar_type(), [&]<class S, class V>() {
      if constexpr (kHasCuda) {
        const int64_t rows = sizes.images * sizes.tokens;
        const auto parts = torch::empty({column_parts(rows, width), width}, like.options());
        join_heads_on_gpu<V, S>({part_of<V>(grads[0]), part_of<V>(grads[1]), part_of<V>(grads[2])},
                                sizes, data<V>(joined), data<S>(parts), data<S>(sums),
                                current_stream(joined.device()));
      }
    });
    return {joined, sums, {}};
  }
};

}  // namespace

std::vector<torch::Tensor> split_heads(const torch::Tensor& qkv, int64_t heads, int64_t parts) {
  const auto split = qkv.reshape({qkv.size(0), qkv.size(1), parts, heads, -1})  // (B, N, 3, H, d)
                         .permute({2, 0, 3, 1, 4});
  // On a GPU the fused kernels take any strides.
  return (qkv.is_cpu() ? split.contiguous() : split).unbind(0);
}

std::vector<torch::Tensor> project_heads(const Weights& weights, const std::string& prefix,
                                         const torch::Tensor& x, int64_t heads, int64_t parts) {
  const auto bias = vector_of(weights, prefix + "bias");
  if (!kHasCuda || !x.is_cuda() || !bias.defined() || !torch::GradMode::is_enabled()) {
    return split_heads(linear(weights, prefix, x), heads, parts);
  }
  if (!is_known_type(product_type(x), bias.scalar_type()) || x.numel() == 0 || parts != 3) {
    return split_heads(linear(weights, prefix, x), heads, parts);
  }
  const auto qkv = linear_of_constant_bias(weights, prefix, x);
  const c10::OptionalDeviceGuard guard(x.device());
  return SplitHeads::apply(qkv, bias, heads);
}

}  // namespace adjoin::nn
