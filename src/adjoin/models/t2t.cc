// T2T-ViT: soft splits with small attention layers between them, then the shared trunk.
#include <cmath>

#include "adjoin/models/forward.h"
#include "adjoin/nn/attention/performer.h"
#include "adjoin/nn/attention/softmax.h"
#include "adjoin/nn/linear.h"
#include "adjoin/nn/mlp.h"

namespace adjoin::models {
namespace {

/// The official performer layers drop this much of their two outputs in training, whatever the
/// network's own dropout is.
constexpr double kPerformerDropout = 0.1;

/// (B, N, in) -> (B, N, dim); the shortcut is v, since the input is wider.
torch::Tensor performer_layer(const Weights& weights, const std::string& prefix, double eps,
                              const torch::Tensor& x, const nn::Context& context) {
  const auto kqv = nn::linear(weights, prefix + "kqv.",
                              nn::layer_norm(weights, prefix + "norm1.", x, eps, context));
  const auto parts = kqv.chunk(3, -1);  // k, q, v
  const auto mixed = nn::performer(parts[1], parts[0], parts[2], weights.at(prefix + "w"));
  const auto y =
      parts[2].to(x.scalar_type()) +
      nn::dropout(nn::linear(weights, prefix + "proj.", mixed), kPerformerDropout, context);
  const auto hidden = torch::gelu(nn::linear(
      weights, prefix + "mlp.0.", nn::layer_norm(weights, prefix + "norm2.", y, eps, context)));
  return y +
         nn::dropout(nn::linear(weights, prefix + "mlp.2.", hidden), kPerformerDropout, context);
}

/// (B, N, in) -> (B, N, dim); scores are scaled by in^-1/2, as in the official code.
torch::Tensor transformer_layer(const Weights& weights, const std::string& prefix, double eps,
                                const torch::Tensor& x, const nn::Context& context) {
  const auto qkv = nn::linear(weights, prefix + "attn.qkv.",
                              nn::layer_norm(weights, prefix + "norm1.", x, eps, context));
  const double scale = 1 / std::sqrt(static_cast<double>(x.size(2)));
  const auto mixed = nn::softmax_attention(qkv, /*heads=*/1, scale, context);
  const auto y =
      qkv.chunk(3, -1)[2].to(x.scalar_type()) + nn::linear(weights, prefix + "attn.proj.", mixed);
  const auto normed = nn::layer_norm(weights, prefix + "norm2.", y, eps, context);
  return nn::settled({y, nn::mlp(weights, prefix + "mlp.", normed, context)});
}

/// Overlapping k x k neighbourhoods as tokens, channel-major.
///
/// (B, C, G, G) -> (B, N, C k k)
torch::Tensor soft_split(const torch::Tensor& image, const Split& split) {
  return torch::im2col(image, {split.kernel, split.kernel}, {1, 1}, {split.padding, split.padding},
                       {split.stride, split.stride})
      .transpose(1, 2);
}

}  // namespace

torch::Tensor embed_family(const ModelSpec& spec, const T2tSpec& t2t, const Weights& weights,
                           const torch::Tensor& images, const nn::Context& context) {
  const std::vector<SplitShape> shapes = split_shapes(spec, t2t);
  auto x = soft_split(images, t2t.tokens.splits.front());  // (B, N, C k k)
  for (size_t i = 1; i < shapes.size(); ++i) {
    const std::string name = "tokens_to_token.attention" + std::to_string(i);
    const bool is_performer = t2t.tokens.kind == TokensKind::kPerformer;
    x = (is_performer ? performer_layer : transformer_layer)(weights, name + ".", spec.norm_eps, x,
                                                             context);
    context.report(name, x);
    const int64_t grid = shapes[i - 1].out_grid;
    const auto image = x.transpose(1, 2).reshape({x.size(0), x.size(2), grid, grid});
    x = soft_split(image, t2t.tokens.splits[i]);
  }
  x = nn::linear(weights, "tokens_to_token.project.", x);  // (B, N, C)
  context.report("tokens_to_token", x);
  return with_class_tokens(weights, x, context);
}

}  // namespace adjoin::models
