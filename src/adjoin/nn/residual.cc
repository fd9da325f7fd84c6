#include "adjoin/nn/residual.h"

#include <ATen/Parallel.h>
#include <c10/core/DeviceGuard.h>

#include "adjoin/nn/autograd.h"
#include "adjoin/nn/kernels/add_norm.h"
#include "adjoin/nn/kernels/dispatch.h"
#include "adjoin/nn/linear.h"

namespace adjoin::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

torch::Tensor reordered(const torch::Tensor& x, const torch::Tensor& rows) {
  return rows.defined() ? x.index_select(1, rows) : x;
}

/// The branch as it is added, its tokens in the order of the stream.
torch::Tensor added(const Branch& branch) {
  auto value = branch.bias.defined() ? branch.value + branch.bias : branch.value;
  if (branch.scale.defined()) value = value * branch.scale.view({-1, 1, 1}).to(value.scalar_type());
  return reordered(value, branch.order.places);
}

/// Everything next_norm reads; undefined tensors where there is nothing.
struct Inputs {
  torch::Tensor sum;
  Branch branch;
  torch::Tensor weight;
  torch::Tensor bias;
  TokenOrder order;
  double eps = 0;
};

/// The same by LibTorch's own functions: {sum, norm}.
variable_list plain(const Inputs& in) {
  const auto sum = in.branch.value.defined() ? in.sum + added(in.branch) : in.sum;
  // Autocast hands over bfloat16; statistics and the residual stream stay as wide as the weights.
  const auto norm = torch::layer_norm(sum.to(in.weight.scalar_type()), {in.weight.size(0)},
                                      in.weight, in.bias, in.eps);
  return {sum, reordered(norm, in.order.tokens)};
}

RowShape row_shape(const torch::Tensor& x) { return {x.size(0) * x.size(1), x.size(2), x.size(1)}; }

/// Rows that a core takes at least.
int64_t grain(const RowShape& shape) { return std::max<int64_t>(1, (1 << 15) / shape.width); }

struct Outputs {
  torch::Tensor sum;
  torch::Tensor norm;
  torch::Tensor statistics;
};

template <class S, class V>
void forward_rows(const Inputs& in, const Outputs& out) {
  const AddNorm<S, V> task{data<S>(in.sum),
                           data<V>(in.branch.value),
                           data<S>(in.branch.bias),
                           data<S>(in.branch.scale),
                           data<int32_t>(in.branch.order.places),
                           data<S>(in.weight),
                           data<S>(in.bias),
                           data<int32_t>(in.order.places),
                           in.eps,
                           data<S>(out.sum),
                           data<V>(out.norm),
                           data<S>(out.statistics)};
  const RowShape shape = row_shape(in.sum);
  if constexpr (kHasCuda) {
    if (in.sum.is_cuda()) {
      return add_norm_on_gpu(task, shape, current_stream(in.sum.device()));
    }
  }
  if constexpr (std::is_same_v<S, V>) {
    at::parallel_for(0, shape.rows, grain(shape),
                     [&](int64_t begin, int64_t end) { add_norm(task, shape, begin, end); });
  }
}

struct Gradients {
  torch::Tensor sum;
  torch::Tensor branch;
  torch::Tensor vectors;  ///< (3, C): of weight, bias and the branch's bias
};

/// `in.sum` is the sum with the branch here.
template <class S, class V>
void backward_rows(const Inputs& in, const torch::Tensor& statistics, const torch::Tensor& grad_sum,
                   const torch::Tensor& grad_norm, Gradients& grads) {
  const RowShape shape = row_shape(in.sum);
  const auto room = [&](int64_t parts) {
    return torch::empty({parts, 3, shape.width}, statistics.options());
  };
  AddNormBackward<S, V> task{data<S>(in.sum),
                             data<S>(statistics),
                             data<S>(in.branch.scale),
                             data<int32_t>(in.branch.order.places),
                             data<S>(in.weight),
                             data<int32_t>(in.order.places),
                             data<V>(grad_norm),
                             data<S>(grad_sum),
                             data<S>(grads.sum),
                             data<V>(grads.branch),
                             nullptr};
  if constexpr (kHasCuda) {
    if (in.sum.is_cuda()) {
      const auto parts = room(add_norm_parts(shape));
      task.parts = data<S>(parts);
      grads.vectors = room(1)[0];
      return add_norm_backward_on_gpu(task, shape, data<S>(grads.vectors),
                                      current_stream(in.sum.device()));
    }
  }
  if constexpr (std::is_same_v<S, V>) {
    const auto parts = room(at::get_num_threads()).zero_();
    at::parallel_for(0, shape.rows, grain(shape), [&](int64_t begin, int64_t end) {
      auto mine = task;
      mine.parts = data<S>(parts) + at::get_thread_num() * 3 * shape.width;
      add_norm_backward(mine, shape, begin, end);
    });
    grads.vectors = parts.sum(0);
  }
}

class AddAndNorm : public torch::autograd::Function<AddAndNorm> {
  using Optional = TorchOptional<torch::Tensor>;

 public:
  static variable_list forward(AutogradContext* ctx, const torch::Tensor& x, const Optional& value,
                               const Optional& branch_bias, const torch::Tensor& weight,
                               const torch::Tensor& bias, const Optional& scale,
                               const Optional& tokens, const Optional& places,
                               const Optional& norm_places, double eps, int64_t type) {
    const auto value_type = static_cast<torch::ScalarType>(type);
    const Inputs in{x,
                    {or_undefined(value),
                     or_undefined(branch_bias),
                     or_undefined(scale),
                     {or_undefined(tokens), or_undefined(places)}},
                    weight,
                    bias,
                    {{}, or_undefined(norm_places)},
                    eps};
    const Outputs out{in.branch.value.defined() ? torch::empty_like(x) : torch::Tensor(),
                      torch::empty(x.sizes(), x.options().dtype(value_type)),
                      torch::empty({x.size(0), x.size(1), 2}, x.options())};
    for_types(value_type, [&]<class S, class V>() { forward_rows<S, V>(in, out); });
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({out.sum.defined() ? out.sum : x, weight, bias, in.branch.scale,
                            in.branch.order.tokens, in.branch.order.places, in.order.places,
                            out.statistics});
    ctx->saved_data["eps"] = eps;
    ctx->saved_data["type"] = type;
    ctx->saved_data["branch"] = in.branch.value.defined();
    ctx->saved_data["branch_bias"] = in.branch.bias.defined();
    if (!out.sum.defined()) return {out.norm};
    return {out.sum, out.norm};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grad_outputs) {
    const variable_list saved = ctx->get_saved_variables();
    const Inputs in{saved[0],       {{}, {}, saved[3], {saved[4], saved[5]}}, saved[1], saved[2],
                    {{}, saved[6]}, ctx->saved_data["eps"].toDouble()};
    const bool has_branch = ctx->saved_data["branch"].toBool();
    const bool has_branch_bias = ctx->saved_data["branch_bias"].toBool();
    const torch::Tensor grad_sum = has_branch ? grad_outputs[0] : torch::Tensor();
    const torch::Tensor grad_norm = grad_outputs.back();
    Gradients grads;
    // Of the norm nothing may be asked, or a gradient that will be differentiated itself.
    if (!grad_norm.defined() || torch::GradMode::is_enabled()) {
      grads = plain_gradients(in, grad_sum, grad_norm, has_branch,
                              static_cast<torch::ScalarType>(ctx->saved_data["type"].toInt()));
    } else {
      const auto norm_grad = grad_norm.contiguous();
      grads.sum = torch::empty_like(in.sum);
      if (has_branch) grads.branch = torch::empty_like(norm_grad);
      for_types(norm_grad.scalar_type(), [&]<class S, class V>() {
        backward_rows<S, V>(in, saved[7], contiguous(grad_sum), norm_grad, grads);
      });
    }
    const auto vector = [&](int64_t which) {
      return grads.vectors.defined() ? grads.vectors[which] : torch::Tensor();
    };
    return {grads.sum,
            grads.branch,
            has_branch_bias ? vector(2) : torch::Tensor(),
            vector(0),
            vector(1),
            {},
            {},
            {},
            {},
            {},
            {}};
  }

 private:
  static torch::Tensor contiguous(const torch::Tensor& tensor) {
    return tensor.defined() ? tensor.contiguous() : tensor;
  }

  /// By LibTorch's own functions, so that it can be differentiated.
  static Gradients plain_gradients(const Inputs& in, const torch::Tensor& grad_sum,
                                   const torch::Tensor& grad_norm, bool has_branch,
                                   torch::ScalarType value_type) {
    Gradients grads;
    grads.sum = grad_sum;
    const auto zeros = torch::zeros_like(in.bias);
    variable_list vectors(3, zeros);
    const auto over_rows = [](const torch::Tensor& x) { return x.flatten(0, 1).sum(0); };
    if (grad_norm.defined()) {
      const auto grad = reordered(grad_norm, in.order.places).to(in.sum.scalar_type());
      const auto centred = in.sum - in.sum.mean(-1, true);
      const auto inverse = (centred.square().mean(-1, true) + in.eps).rsqrt();
      const auto normed = centred * inverse;
      const auto scaled = grad * in.weight;
      const auto through =
          inverse * (scaled - scaled.mean(-1, true) - normed * (scaled * normed).mean(-1, true));
      grads.sum = grad_sum.defined() ? grad_sum + through : through;
      vectors[0] = over_rows(grad * normed);
      vectors[1] = over_rows(grad);
    }
    if (!grads.sum.defined()) return grads;
    if (has_branch) {
      auto scaled = grads.sum;
      if (in.branch.scale.defined()) scaled = scaled * in.branch.scale.view({-1, 1, 1});
      vectors[2] = over_rows(scaled);
      grads.branch = reordered(scaled, in.branch.order.tokens).to(value_type);
    }
    grads.vectors = torch::stack(vectors);
    return grads;
  }
};

/// Whether the kernels know these types and shapes.
bool is_fusible(const Inputs& in, torch::ScalarType value_type) {
  const torch::ScalarType type = in.sum.scalar_type();
  const auto is_alike = [](const torch::Tensor& tensor, torch::ScalarType wanted) {
    return !tensor.defined() || tensor.scalar_type() == wanted;
  };
  const bool has_types = is_known_type(value_type, type) && is_alike(in.weight, type) &&
                         is_alike(in.bias, type) && is_alike(in.branch.bias, type) &&
                         is_alike(in.branch.value, value_type);
  if (!has_types || in.sum.dim() != 3 || in.sum.numel() == 0) return false;
  const auto has = [&](const torch::Tensor& tensor, int64_t count) {
    return !tensor.defined() || (tensor.numel() == count && tensor.device() == in.sum.device());
  };
  const Branch& branch = in.branch;
  if (!has(in.weight, in.sum.size(2)) || !has(in.bias, in.sum.size(2)) ||
      !has(branch.bias, in.sum.size(2)) || !has(branch.value, in.sum.numel()) ||
      !has(branch.scale, in.sum.size(0)) || !is_alike(branch.scale, type) ||
      !has(branch.order.places, in.sum.size(1)) || !has(in.order.places, in.sum.size(1)) ||
      !is_alike(branch.order.places, torch::kInt32) || !is_alike(in.order.places, torch::kInt32)) {
    return false;
  }
  return in.sum.is_cpu() ? value_type == type
                         : kHasCuda && in.sum.is_cuda() && in.sum.size(2) <= kMostWidth;
}

}  // namespace

Branch projected(const Weights& weights, const std::string& prefix, const torch::Tensor& x,
                 const Context& context) {
  if (context.is_training && context.dropout > 0) {
    return {dropout(linear(weights, prefix, x), context.dropout, context), {}, {}, {}};
  }
  return {product(weights, prefix, x), vector_of(weights, prefix + "bias"), {}, {}};
}

torch::Tensor settled(const Stream& stream) {
  return stream.branch ? stream.sum + added(*stream.branch) : stream.sum;
}

torch::Tensor next_norm(Stream& stream, const Weights& weights, const std::string& prefix,
                        double eps, const Context& context, const TokenOrder& order) {
  if (!context.has_norms) {
    stream = {settled(stream)};
    return reordered(stream.sum, order.tokens);
  }
  Inputs in{stream.sum,
            stream.branch ? *stream.branch : Branch{},
            vector_of(weights, prefix + "weight"),
            vector_of(weights, prefix + "bias"),
            order,
            eps};
  stream.branch.reset();
  const torch::ScalarType value_type = product_type(in.sum);
  if (!is_fusible(in, value_type)) {
    auto out = plain(in);
    stream.sum = out[0];
    return out[1];
  }
  auto whole = [](const torch::Tensor& t) { return t.defined() ? t.contiguous() : t; };
  const c10::OptionalDeviceGuard guard(in.sum.device());
  auto out = AddAndNorm::apply(whole(in.sum), optional(whole(in.branch.value)),
                               optional(whole(in.branch.bias)), whole(in.weight), whole(in.bias),
                               optional(whole(in.branch.scale)), optional(in.branch.order.tokens),
                               optional(in.branch.order.places), optional(order.places), eps,
                               static_cast<int64_t>(value_type));
  if (out.size() > 1) stream.sum = out.front();
  return out.back();
}

}  // namespace adjoin::nn
