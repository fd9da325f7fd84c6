// ViT and DeiT: patches into the shared trunk.
#include "adjoin/models/forward.h"
#include "adjoin/nn/patch_embed.h"

namespace adjoin::models {

torch::Tensor embed_family(const ModelSpec& /*spec*/, const VitSpec& /*vit*/,
                           const Weights& weights, const torch::Tensor& images,
                           const nn::Context& context) {
  const auto patches = nn::patch_embed(weights, "patch_embed.proj.", images);  // (B, N, C)
  context.report("patch_embed", patches);
  return with_class_tokens(weights, patches, context);
}

}  // namespace adjoin::models
