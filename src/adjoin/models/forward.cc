#include "adjoin/models/forward.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "adjoin/core/error.h"
#include "adjoin/nn/block.h"
#include "adjoin/nn/linear.h"

namespace adjoin::models {

Output forward(const ModelSpec& spec, const Weights& weights, const torch::Tensor& images,
               const nn::Context& context) {
  return answer(spec, weights, embed(spec, weights, images, context), context);
}

torch::Tensor embed(const ModelSpec& spec, const Weights& weights, const torch::Tensor& images,
                    const nn::Context& context) {
  if (images.dim() != 4 || images.size(1) != spec.in_chans || images.size(2) != spec.img_size ||
      images.size(3) != spec.img_size) {
    throw Error(ErrorKind::kData, fmt::format("{}: images are ({}), must be (batch, {}, {}, {})",
                                              spec.name, fmt::join(images.sizes(), ", "),
                                              spec.in_chans, spec.img_size, spec.img_size));
  }
  return std::visit(
      [&](const auto& family) { return embed_family(spec, family, weights, images, context); },
      spec.family);
}

Output answer(const ModelSpec& spec, const Weights& weights, const torch::Tensor& tokens,
              const nn::Context& context) {
  return std::visit(
      [&](const auto& family) {
        if constexpr (requires { family.pool; }) {
          return token_answer(spec, family.pool, weights, tokens, context);
        } else {
          return answer_family(spec, family, weights, tokens, context);
        }
      },
      spec.family);
}

torch::Tensor with_class_tokens(const Weights& weights, const torch::Tensor& patches,
                                const nn::Context& context) {
  const torch::Tensor& cls_token = weights.at("cls_token");
  const auto dist_token = weights.find("dist_token");
  std::vector<torch::Tensor> tokens = {cls_token.expand({patches.size(0), 1, -1})};
  if (dist_token.defined()) tokens.push_back(dist_token.expand({patches.size(0), 1, -1}));
  tokens.push_back(patches.to(cls_token.scalar_type()));  // the stream is as precise as the weights
  return nn::dropout(torch::cat(tokens, 1) + weights.at("pos_embed"), context.dropout, context);
}

Output token_answer(const ModelSpec& spec, PoolKind pool, const Weights& weights,
                    const torch::Tensor& tokens, const nn::Context& context) {
  nn::Stream stream = nn::blocks(spec, weights, tokens, context);
  const auto x = nn::next_norm(stream, weights, "norm.", spec.norm_eps, context);  // (B, N, C)
  context.report("norm", x);

  const bool is_distilled = weights.find("dist_token").defined();
  const int64_t prefix = is_distilled ? 2 : 1;
  const auto pooled = [&](int64_t index) {
    return pool == PoolKind::kToken ? x.select(1, index)
                                    : x.narrow(1, prefix, x.size(1) - prefix).mean(1);  // (B, C)
  };
  Output output{nn::linear(weights, "head.", pooled(0)), {}};
  if (is_distilled) output.dist = nn::linear(weights, "head_dist.", pooled(1));
  return output;
}

}  // namespace adjoin::models
