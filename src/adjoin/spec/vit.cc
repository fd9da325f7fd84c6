#include "adjoin/spec/vit.h"

#include "adjoin/spec/ops.h"
#include "adjoin/spec/tensors.h"
#include "adjoin/spec/trunk.h"

namespace adjoin {

void validate_family(const ModelSpec& model, const VitSpec& vit) {
  if (model.img_size % vit.patch_size != 0) {
    const int64_t below = model.img_size / vit.patch_size * vit.patch_size;
    throw Error(
        ErrorKind::kConfig,
        fmt::format("model.img_size: {} is not a multiple of patch_size {}; nearest legal: {}",
                    model.img_size, vit.patch_size,
                    below == 0 ? fmt::format("{}", vit.patch_size)
                               : fmt::format("{} or {}", below, below + vit.patch_size)));
  }
  check_tokens(vit_patches(model, vit));
}

std::vector<TensorInfo> tensors_of(const ModelSpec& model, const VitSpec& vit) {
  std::vector<TensorInfo> rows;
  TensorTable table(rows);
  const int64_t tokens = vit_patches(model, vit) + (vit.distilled ? 2 : 1);
  trunk_token_tensors(table, vit.embed_dim, tokens, vit.distilled, vit.pos_embed);
  table.patch_conv("patch_embed.proj.", vit.embed_dim, model.in_chans, vit.patch_size);
  trunk_block_tensors(table, model, vit.embed_dim, vit.distilled);
  return rows;
}

std::vector<Op> ops_of(const ModelSpec& model, const VitSpec& vit) {
  OpGraph graph(model);
  const int64_t patches = graph.add("patch_embed",
                                    PatchEmbedOp{"patch_embed.proj.weight", "patch_embed.proj.bias",
                                                 model.in_chans, vit.patch_size},
                                    {kImage}, {vit_patches(model, vit), vit.embed_dim});
  graph.token_trunk(patches, vit.pool, vit.distilled);
  return graph.take();
}

}  // namespace adjoin
