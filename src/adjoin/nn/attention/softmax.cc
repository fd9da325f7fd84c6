#include "adjoin/nn/attention/softmax.h"

#include "adjoin/nn/attention/blocked.h"
#include "adjoin/nn/attention/heads.h"

namespace adjoin::nn {

torch::Tensor plain_attention(const torch::Tensor& q, const torch::Tensor& k,
                              const torch::Tensor& v, double scale, const torch::Tensor& bias) {
  auto scores = torch::matmul(q * scale, k.transpose(-2, -1));  // (.., N, N)
  if (bias.defined()) scores = scores + bias;
  return torch::matmul(torch::softmax(scores, -1), v);
}

torch::Tensor scaled_dot_product(const torch::Tensor& q, const torch::Tensor& k,
                                 const torch::Tensor& v, double scale, const torch::Tensor& bias,
                                 [[maybe_unused]] const Context& context) {
  if (v.size(-1) != q.size(-1)) return plain_attention(q, k, v, scale, bias);
#if ADJOIN_TORCH >= 20100
  // The fused kernels have no second derivative.
  if (context.is_differentiated_twice) return plain_attention(q, k, v, scale, bias);
  const TorchOptional<torch::Tensor> mask =
      bias.defined() ? TorchOptional<torch::Tensor>(bias.to(q.scalar_type()))
                     : TorchOptional<torch::Tensor>();
  const auto fused = [&](auto shaped, const TorchOptional<torch::Tensor>& shaped_mask) {
    return at::scaled_dot_product_attention(shaped(q), shaped(k), shaped(v), shaped_mask,
                                            /*dropout_p=*/0, /*is_causal=*/false, scale)
        .view(q.sizes());
  };
  if (q.dim() <= 4) {
    return at::scaled_dot_product_attention(q, k, v, mask, 0, false, scale);
  }
  // The fused kernels know a batch and heads. Where windows differ in their bias they count as
  // heads, else as images: the bias is then repeated without a copy.
  if (mask && mask->size(0) > 1) {
    return fused([](const torch::Tensor& x) { return x.flatten(1, 2); },
                 mask->flatten(0, 1).unsqueeze(0));
  }
  return fused([](const torch::Tensor& x) { return x.flatten(0, 1); }, mask);
#else
  const bool is_wide = q.scalar_type() == torch::kFloat32 || q.scalar_type() == torch::kFloat64;
  const bool is_blocked = q.is_cpu() && is_wide;
  return is_blocked ? blocked_attention(q, k, v, scale, bias)
                    : plain_attention(q, k, v, scale, bias);
#endif
}

torch::Tensor softmax_attention(const torch::Tensor& qkv, int64_t heads, double scale,
                                const Context& context) {
  const auto split = split_heads(qkv, heads);  // q, k, v
  const auto out =
      scaled_dot_product(split[0], split[1], split[2], scale, {}, context);  // (B, H, N, d)
  return out.transpose(1, 2).reshape({qkv.size(0), qkv.size(1), -1});
}

}  // namespace adjoin::nn
