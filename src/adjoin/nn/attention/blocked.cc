#include "adjoin/nn/attention/blocked.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <functional>

#include "adjoin/nn/attention/small_heads.h"
#include "adjoin/nn/attention/softmax.h"
#include "adjoin/nn/autograd.h"

namespace adjoin::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kCacheBytes = 384 << 10;  // of scores at a time: they and what they meet fit L2

/// Calls `work(begin, end)` for runs of heads that fit the cache, on all cores. Every core computes
/// alone, outside autograd.
void for_each_run(const torch::Tensor& q, const std::function<void(int64_t, int64_t)>& work) {
  const int64_t count = q.size(0);
  const int64_t bytes = q.size(1) * q.size(1) * q.element_size();
  const int64_t run = std::max<int64_t>(1, kCacheBytes / bytes);
  at::parallel_for(0, count, 1, [&](int64_t first, int64_t last) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    for (int64_t begin = first; begin < last; begin += run)
      work(begin, std::min(begin + run, last));
  });
}

/// Calls `work(head, bias row, how many)` for the parts of [begin, end) whose bias rows are
/// adjacent.
template <class Work>
void for_each_bias_part(int64_t begin, int64_t end, int64_t rows, Work work) {
  while (begin < end) {
    const int64_t row = begin % rows;
    const int64_t count = std::min(end - begin, rows - row);
    work(begin, row, count);
    begin += count;
  }
}

/// scores [0, end - begin) = q k^T scale + bias of the heads [begin, end).
void compute_scores(torch::Tensor& scores, const torch::Tensor& q, const torch::Tensor& kt,
                    const torch::Tensor& bias, double scale, int64_t begin, int64_t end) {
  if (!bias.defined()) {
    at::bmm_out(scores, q.slice(0, begin, end) * scale, kt.slice(0, begin, end));
    return;
  }
  for_each_bias_part(begin, end, bias.size(0), [&](int64_t head, int64_t row, int64_t count) {
    auto part = scores.narrow(0, head - begin, count);
    at::baddbmm_out(part, bias.narrow(0, row, count), q.narrow(0, head, count),
                    kt.narrow(0, head, count), 1, scale);
  });
}

/// Calls `work(head)` for every head, on all cores.
template <class Work>
void for_each_head(const torch::Tensor& q, Work work) {
  constexpr int64_t kGrain = 64;
  at::parallel_for(0, q.size(0), kGrain, [&](int64_t first, int64_t last) {
    for (int64_t head = first; head < last; ++head) work(head);
  });
}

/// `attend` of heads that are too small for a matrix library.
template <class T>
void attend_small(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                  double scale, const torch::Tensor& bias, torch::Tensor& out,
                  torch::Tensor& probs) {
  const HeadShape shape{q.size(1), q.size(2), scale};
  const int64_t matrix = shape.tokens * shape.dim;
  const int64_t square = shape.tokens * shape.tokens;
  const T* bias_data = bias.defined() ? bias.data_ptr<T>() : nullptr;
  const int64_t rows = bias.defined() ? bias.size(0) : 1;
  const T *q_data = q.data_ptr<T>(), *k_data = k.data_ptr<T>(), *v_data = v.data_ptr<T>();
  T *out_data = out.data_ptr<T>(), *probs_data = probs.data_ptr<T>();
  for_each_head(q, [&](int64_t g) {
    const T* row = bias_data == nullptr ? nullptr : bias_data + g % rows * square;
    nn::attend(HeadForward<T>{q_data + g * matrix, k_data + g * matrix, v_data + g * matrix, row,
                              out_data + g * matrix, probs_data + g * square},
               shape);
  });
}

/// All heads in one axis: q, k, v (G, N, d), bias (rows, N, N). Keeps the attention matrices when
/// `probs` is given.
torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                     double scale, const torch::Tensor& bias, torch::Tensor* probs) {
  const int64_t tokens = q.size(1);
  auto out = torch::empty_like(q);
  if (is_small_head(tokens, q.size(2))) {
    // Seen by profilers, and by those who count products.
    const std::vector<c10::IValue> inputs = {q, k, v};
    RECORD_FUNCTION("adjoin::attend_small",
                    c10::ArrayRef<const c10::IValue>(inputs.data(), inputs.size()));
    auto kept = torch::empty({q.size(0), tokens, tokens}, q.options());
    AT_DISPATCH_FLOATING_TYPES(q.scalar_type(), "attend_small",
                               [&] { attend_small<scalar_t>(q, k, v, scale, bias, out, kept); });
    if (probs != nullptr) *probs = kept;
    return out;
  }
  if (probs != nullptr) *probs = torch::empty({q.size(0), tokens, tokens}, q.options());
  const auto kt = k.transpose(1, 2);
  for_each_run(q, [&](int64_t begin, int64_t end) {
    auto scores = at::empty({end - begin, tokens, tokens}, q.options());
    compute_scores(scores, q, kt, bias, scale, begin, end);
    auto weights = probs != nullptr ? probs->slice(0, begin, end) : at::empty_like(scores);
    at::_softmax_out(weights, scores, -1, /*half_to_float=*/false);
    auto mixed = out.slice(0, begin, end);
    at::bmm_out(mixed, weights, v.slice(0, begin, end));
  });
  return out;
}

struct Gradients {
  torch::Tensor q, k, v, bias;
};

/// `gradients` of heads that are too small for a matrix library. `partial` (cores, rows, N, N)
/// takes those of the bias.
template <class T>
void gradients_small(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                     double scale, const torch::Tensor& probs, const torch::Tensor& grad_out,
                     Gradients& grads, const torch::Tensor& partial) {
  const HeadShape shape{q.size(1), q.size(2), scale};
  const int64_t matrix = shape.tokens * shape.dim;
  const int64_t square = shape.tokens * shape.tokens;
  const int64_t rows = partial.defined() ? partial.size(1) : 1;
  T* bias_data = partial.defined() ? partial.data_ptr<T>() : nullptr;
  const T *q_data = q.data_ptr<T>(), *k_data = k.data_ptr<T>(), *v_data = v.data_ptr<T>();
  const T *probs_data = probs.data_ptr<T>(), *out_data = grad_out.data_ptr<T>();
  T *dq = grads.q.data_ptr<T>(), *dk = grads.k.data_ptr<T>(), *dv = grads.v.data_ptr<T>();
  for_each_head(q, [&](int64_t g) {
    T* bias = bias_data == nullptr ? nullptr
                                   : bias_data + (at::get_thread_num() * rows + g % rows) * square;
    attend_backward(HeadBackward<T>{q_data + g * matrix, k_data + g * matrix, v_data + g * matrix,
                                    probs_data + g * square, out_data + g * matrix, dq + g * matrix,
                                    dk + g * matrix, dv + g * matrix, bias},
                    shape);
  });
}

Gradients gradients(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                    double scale, int64_t bias_rows, const torch::Tensor& probs,
                    const torch::Tensor& grad_out) {
  const int64_t tokens = q.size(1);
  Gradients grads{torch::empty_like(q), torch::empty_like(k), torch::empty_like(v), {}};
  torch::Tensor partial;  // of the bias, one per core
  if (bias_rows > 0) {
    partial = torch::zeros({at::get_num_threads(), bias_rows, tokens, tokens}, q.options());
  }
  if (is_small_head(tokens, q.size(2))) {
    AT_DISPATCH_FLOATING_TYPES(q.scalar_type(), "gradients_small", [&] {
      gradients_small<scalar_t>(q, k, v, scale, probs, grad_out, grads, partial);
    });
    if (bias_rows > 0) grads.bias = partial.sum(0);
    return grads;
  }
  for_each_run(q, [&](int64_t begin, int64_t end) {
    const auto p = probs.slice(0, begin, end);
    const auto dout = grad_out.slice(0, begin, end);
    auto dv = grads.v.slice(0, begin, end);
    at::bmm_out(dv, p.transpose(1, 2), dout);
    const auto dp = at::bmm(dout, v.slice(0, begin, end).transpose(1, 2));
    const auto ds = at::_softmax_backward_data(dp, p, -1, q.scalar_type());  // (run, N, N)
    auto dq = grads.q.slice(0, begin, end);
    at::bmm_out(dq, ds, k.slice(0, begin, end)).mul_(scale);
    auto dk = grads.k.slice(0, begin, end);
    at::bmm_out(dk, ds.transpose(1, 2), q.slice(0, begin, end)).mul_(scale);
    if (bias_rows == 0) return;
    auto mine = partial.select(0, at::get_thread_num());
    for_each_bias_part(begin, end, bias_rows, [&](int64_t head, int64_t row, int64_t count) {
      mine.narrow(0, row, count).add_(ds.narrow(0, head - begin, count));
    });
  });
  if (bias_rows > 0) grads.bias = partial.sum(0);
  return grads;
}

class BlockedAttention : public torch::autograd::Function<BlockedAttention> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& q, const torch::Tensor& k,
                               const torch::Tensor& v, double scale,
                               const TorchOptional<torch::Tensor>& given_bias) {
    const torch::Tensor bias = or_undefined(given_bias);
    torch::Tensor probs;
    auto out = attend(q, k, v, scale, bias, &probs);
    ctx->save_for_backward({q, k, v, bias, probs});
    ctx->saved_data["scale"] = scale;
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grad_outputs) {
    const variable_list saved = ctx->get_saved_variables();
    const torch::Tensor &q = saved[0], &k = saved[1], &v = saved[2], &bias = saved[3];
    const double scale = ctx->saved_data["scale"].toDouble();
    if (torch::GradMode::is_enabled()) {  // the gradient itself will be differentiated
      return differentiable(q, k, v, scale, bias, grad_outputs[0]);
    }
    const bool needs_bias = bias.defined() && bias.requires_grad();
    const Gradients grads = gradients(q, k, v, scale, needs_bias ? bias.size(0) : 0, saved[4],
                                      grad_outputs[0].contiguous());
    return {grads.q, grads.k, grads.v, {}, grads.bias};
  }

 private:
  static variable_list differentiable(const torch::Tensor& q, const torch::Tensor& k,
                                      const torch::Tensor& v, double scale,
                                      const torch::Tensor& bias, const torch::Tensor& grad_out) {
    const auto repeated =
        bias.defined() ? bias.repeat({q.size(0) / bias.size(0), 1, 1}) : torch::Tensor();
    auto grads = differentiable_gradients(plain_attention(q, k, v, scale, repeated),
                                          {q, k, v, bias}, grad_out);
    grads.insert(grads.begin() + 3, torch::Tensor());  // of the scale
    return grads;
  }
};

}  // namespace

torch::Tensor blocked_attention(const torch::Tensor& q, const torch::Tensor& k,
                                const torch::Tensor& v, double scale, const torch::Tensor& bias) {
  const auto one_axis = [](const torch::Tensor& x) { return x.flatten(0, -3).contiguous(); };
  const auto rows = bias.defined() ? one_axis(bias) : bias;
  const bool is_recorded = torch::GradMode::is_enabled() &&
                           (q.requires_grad() || k.requires_grad() || v.requires_grad() ||
                            (bias.defined() && bias.requires_grad()));
  const auto out =
      is_recorded
          ? BlockedAttention::apply(one_axis(q), one_axis(k), one_axis(v), scale, optional(rows))
          : attend(one_axis(q), one_axis(k), one_axis(v), scale, rows, nullptr);
  return out.view(q.sizes());
}

}  // namespace adjoin::nn
