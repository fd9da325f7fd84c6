#include "adjoin/nn/attention/blocked.h"

#include <ATen/Parallel.h>

#include <functional>

#include "adjoin/nn/attention/softmax.h"

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

/// All heads in one axis: q, k, v (G, N, d), bias (rows, N, N). Keeps the attention matrices when
/// `probs` is given.
torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                     double scale, const torch::Tensor& bias, torch::Tensor* probs) {
  const int64_t tokens = q.size(1);
  auto out = torch::empty_like(q);
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

Gradients gradients(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                    double scale, int64_t bias_rows, const torch::Tensor& probs,
                    const torch::Tensor& grad_out) {
  const int64_t tokens = q.size(1);
  Gradients grads{torch::empty_like(q), torch::empty_like(k), torch::empty_like(v), {}};
  torch::Tensor partial;  // of the bias, one per core
  if (bias_rows > 0) {
    partial = torch::zeros({at::get_num_threads(), bias_rows, tokens, tokens}, q.options());
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
    const torch::Tensor bias = given_bias ? *given_bias : torch::Tensor();
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
    const auto out = plain_attention(q, k, v, scale, repeated);
    variable_list inputs;
    for (const auto& input : {q, k, v, bias}) {
      if (input.defined() && input.requires_grad()) inputs.push_back(input);
    }
    const auto grads = torch::autograd::grad({out}, inputs, {grad_out}, /*retain_graph=*/true,
                                             /*create_graph=*/true);
    size_t next = 0;
    const auto take = [&](const torch::Tensor& input) {
      return input.defined() && input.requires_grad() ? grads[next++] : torch::Tensor();
    };
    auto dq = take(q), dk = take(k), dv = take(v);
    return {dq, dk, dv, {}, take(bias)};
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
  const auto out = is_recorded
                       ? BlockedAttention::apply(one_axis(q), one_axis(k), one_axis(v), scale,
                                                 bias.defined() ? TorchOptional<torch::Tensor>(rows)
                                                                : TorchOptional<torch::Tensor>())
                       : attend(one_axis(q), one_axis(k), one_axis(v), scale, rows, nullptr);
  return out.view(q.sizes());
}

}  // namespace adjoin::nn
