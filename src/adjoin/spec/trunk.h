#pragma once

// What ViT and T2T share once there are patch tokens: class token(s), positions, blocks, norm,
// head.

#include <vector>

#include "adjoin/spec/model_spec.h"
#include "adjoin/spec/tensors.h"

namespace adjoin {

/// Patches of a ViT: (img_size / patch_size)^2.
int64_t vit_patches(const ModelSpec& model, const VitSpec& vit);

void place_trunk_blocks(const std::vector<BlockSpec>& blocks, int64_t embed_dim, int64_t tokens,
                        std::vector<PlacedBlock>& placed);

/// Rows of cls_token, dist_token and pos_embed, which come first in a file.
void trunk_token_tensors(TensorTable& table, int64_t embed_dim, int64_t tokens, bool is_distilled,
                         PosEmbed pos_embed);

/// Rows of the blocks, the final norm and the head(s).
void trunk_block_tensors(TensorTable& table, const ModelSpec& model, int64_t embed_dim,
                         bool is_distilled);

/// Throws Error(kConfig) when there are too many tokens to count safely.
void check_tokens(int64_t tokens);

}  // namespace adjoin
