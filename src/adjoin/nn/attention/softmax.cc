#include "adjoin/nn/attention/softmax.h"

#include "adjoin/nn/attention/blocked.h"

namespace adjoin::nn {

torch::Tensor split_heads(const torch::Tensor& qkv, int64_t heads) {
  return qkv
      .reshape({qkv.size(0), qkv.size(1), 3, heads, -1})  // (B, N, 3, H, d)
      .permute({2, 0, 3, 1, 4})
      .contiguous();  // (3, B, H, N, d)
}

torch::Tensor plain_attention(const torch::Tensor& q, const torch::Tensor& k,
                              const torch::Tensor& v, double scale, const torch::Tensor& bias) {
  auto scores = torch::matmul(q * scale, k.transpose(-2, -1));  // (.., N, N)
  if (bias.defined()) scores = scores + bias;
  return torch::matmul(torch::softmax(scores, -1), v);
}

torch::Tensor scaled_dot_product(const torch::Tensor& q, const torch::Tensor& k,
                                 const torch::Tensor& v, double scale, const torch::Tensor& bias) {
#if ADJOIN_TORCH >= 20100
  const auto mask = bias.defined() ? std::optional(bias.to(q.scalar_type())) : std::nullopt;
  return at::scaled_dot_product_attention(q, k, v, mask, /*dropout_p=*/0, /*is_causal=*/false,
                                          scale);
#else
  const bool is_wide = q.scalar_type() == torch::kFloat32 || q.scalar_type() == torch::kFloat64;
  const bool is_blocked = q.is_cpu() && is_wide;
  return is_blocked ? blocked_attention(q, k, v, scale, bias)
                    : plain_attention(q, k, v, scale, bias);
#endif
}

torch::Tensor softmax_attention(const torch::Tensor& qkv, int64_t heads, double scale) {
  const auto split = split_heads(qkv, heads);
  const auto out = scaled_dot_product(split[0], split[1], split[2], scale, {});  // (B, H, N, d)
  return out.transpose(1, 2).reshape({qkv.size(0), qkv.size(1), -1});
}

}  // namespace adjoin::nn
