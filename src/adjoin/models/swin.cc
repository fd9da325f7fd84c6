// Swin: patches, stages of windowed blocks with merging between them, mean over tokens.
#include "adjoin/models/forward.h"
#include "adjoin/nn/block.h"
#include "adjoin/nn/linear.h"
#include "adjoin/nn/patch_embed.h"

namespace adjoin::models {
namespace {

/// 2x2 neighbours side by side, offsets (0,0) (1,0) (0,1) (1,1), norm, reduction.
///
/// (B, G G, C) -> (B, G G / 4, C')
torch::Tensor merge_patches(const Weights& weights, const std::string& prefix, double eps,
                            int64_t grid, const torch::Tensor& x, const nn::Context& context) {
  const int64_t half = grid / 2;
  const auto merged = x.view({x.size(0), half, 2, half, 2, x.size(2)})
                          .permute({0, 1, 3, 4, 2, 5})  // column offset before row offset
                          .reshape({x.size(0), half * half, 4 * x.size(2)});
  return nn::linear(weights, prefix + "reduction.",
                    nn::layer_norm(weights, prefix + "norm.", merged, eps, context))
      .to(x.scalar_type());  // autocast must not narrow the residual stream
}

}  // namespace

torch::Tensor embed_family(const ModelSpec& spec, const SwinSpec& /*swin*/, const Weights& weights,
                           const torch::Tensor& images, const nn::Context& context) {
  const auto x =
      nn::layer_norm(weights, "patch_embed.norm.",
                     nn::patch_embed(weights, "patch_embed.proj.", images), spec.norm_eps, context);
  context.report("patch_embed", x);  // (B, G G, C)
  return nn::dropout(x, context.dropout, context);
}

Output answer_family(const ModelSpec& spec, const SwinSpec& swin, const Weights& weights,
                     const torch::Tensor& tokens, const nn::Context& context) {
  size_t stage = 0;
  const auto enter_stage = [&](size_t wanted, nn::Stream x) {
    while (stage < wanted) {
      const std::string name = "layers." + std::to_string(stage + 1) + ".downsample";
      x = {merge_patches(weights, name + ".", spec.norm_eps, stage_grid(spec, swin, stage),
                         nn::settled(x), context)};
      context.report(name, x.sum);
      ++stage;
    }
    return x;
  };
  std::vector<size_t> stage_of_block;
  for (size_t s = 0; s < swin.stages.size(); ++s) {
    stage_of_block.insert(stage_of_block.end(), swin.stages[s].blocks.size(), s);
  }
  auto stream = nn::blocks(spec, weights, tokens, context, [&](size_t i, nn::Stream x) {
    return enter_stage(stage_of_block[i], std::move(x));
  });
  stream = enter_stage(swin.stages.size() - 1, std::move(stream));  // whose blocks were all removed

  const auto x = nn::next_norm(stream, weights, "norm.", spec.norm_eps, context);
  context.report("norm", x);
  return {nn::linear(weights, "head.fc.", x.mean(1)), {}};
}

}  // namespace adjoin::models
