#pragma once

// ViT and DeiT (Dosovitskiy et al. 2021; Touvron et al. 2021): patches, class token, learned
// positions, pre-norm blocks.

#include <vector>

#include "adjoin/spec/block.h"

namespace adjoin {

struct ModelSpec;
struct Op;
struct TensorInfo;

struct VitSpec {
  int64_t patch_size = 16;
  int64_t embed_dim = 192;
  PoolKind pool = PoolKind::kToken;
  bool distilled = false;  ///< DeiT's second token and head
  PosEmbed pos_embed = PosEmbed::kLearned;
  std::vector<BlockSpec> blocks;

  bool operator==(const VitSpec&) const = default;
};

template <class Visitor>
void fields(Visitor& visit, VitSpec& vit) {
  visit("patch_size", vit.patch_size, Range{1, 1024});
  visit("embed_dim", vit.embed_dim, Range{1, 16384});
  visit("pool", vit.pool);
  visit("distilled", vit.distilled);
  visit("pos_embed", vit.pos_embed);
  visit("blocks", vit.blocks);
}

void validate_family(const ModelSpec& model, const VitSpec& vit);
std::vector<TensorInfo> tensors_of(const ModelSpec& model, const VitSpec& vit);
std::vector<Op> ops_of(const ModelSpec& model, const VitSpec& vit);

}  // namespace adjoin
