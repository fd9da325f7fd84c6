#include "adjoin/nn/attention/linear_attention.h"

#include "adjoin/tensor/device.h"
#include "adjoin/tensor/widened.h"

namespace adjoin::nn {
namespace {

torch::Tensor feature(const torch::Tensor& x) { return torch::elu(widened(x)) + 1; }

/// What queries see of a sum of keys and values.
torch::Tensor seen(const torch::Tensor& q, const torch::Tensor& values, const torch::Tensor& keys) {
  return torch::matmul(q, values) / (torch::matmul(q, keys) + kLinearEps);
}

torch::Tensor all_at_once(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
  return seen(q, torch::matmul(k.transpose(1, 2), v), k.sum(1).unsqueeze(-1));
}

/// Pairs inside a group, sums over the groups before it.
torch::Tensor group_by_group(const torch::Tensor& q, const torch::Tensor& k,
                             const torch::Tensor& v) {
  const int64_t tokens = q.size(1);
  const int64_t groups = linear_groups(tokens);
  const auto grouped = [&](const torch::Tensor& x) {  // (G, groups, group, d)
    return torch::constant_pad_nd(x, {0, 0, 0, groups * kLinearGroup - tokens})
        .unflatten(1, {groups, kLinearGroup});
  };
  const auto queries = grouped(q), keys = grouped(k), values = grouped(v);
  const auto pairs = torch::matmul(queries, keys.transpose(-2, -1)).tril();
  auto mixed = torch::matmul(pairs, values);
  auto norm = pairs.sum(-1, true);
  if (groups > 1) {
    const auto before = [](const torch::Tensor& x) { return x.cumsum(1) - x; };
    mixed = mixed + torch::matmul(queries, before(torch::matmul(keys.transpose(-2, -1), values)));
    norm = norm + torch::matmul(queries, before(keys.sum(2)).unsqueeze(-1));
  }
  return (mixed / (norm + kLinearEps)).flatten(1, 2).narrow(1, 0, tokens);
}

torch::Tensor token_by_token(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                             bool is_causal) {
  auto values = torch::zeros({q.size(0), q.size(2), v.size(2)}, q.options());
  auto keys = torch::zeros({q.size(0), q.size(2), 1}, q.options());
  // Unbound at once: the gradient of a part of a tensor is as large as the whole.
  const auto q_of = q.unbind(1), k_of = k.unbind(1), v_of = v.unbind(1);  // (G, d) each
  std::vector<torch::Tensor> rows;
  for (size_t t = 0; t < k_of.size(); ++t) {
    const auto key = k_of[t].unsqueeze(2);  // (G, d, 1)
    values = torch::baddbmm(values, key, v_of[t].unsqueeze(1));
    keys = keys + key;
    if (is_causal) rows.push_back(seen(q_of[t].unsqueeze(1), values, keys));
  }
  return is_causal ? torch::cat(rows, 1) : seen(q, values, keys);
}

}  // namespace

torch::Tensor linear_attention(const torch::Tensor& q_in, const torch::Tensor& k_in,
                               const torch::Tensor& v_in, const Mixer& mixer) {
  const Autocast exact(q_in.device(), false);  // long sums are no work for bfloat16
  const auto flat = [](const torch::Tensor& x) { return x.flatten(0, -3); };  // (G, N, d)
  const auto q = feature(flat(q_in)), k = feature(flat(k_in)), v = widened(flat(v_in));
  const auto mixed = mixer.kind == MixerKind::kRecurrent ? token_by_token(q, k, v, mixer.is_causal)
                     : mixer.is_causal                   ? group_by_group(q, k, v)
                                                         : all_at_once(q, k, v);
  return mixed.view_as(v_in).to(v_in.scalar_type());
}

}  // namespace adjoin::nn
