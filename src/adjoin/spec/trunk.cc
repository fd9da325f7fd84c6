#include "adjoin/spec/trunk.h"

namespace adjoin {

int64_t vit_patches(const ModelSpec& model, const VitSpec& vit) {
  const int64_t grid = model.img_size / vit.patch_size;
  return grid * grid;
}

void place_trunk_blocks(const std::vector<BlockSpec>& blocks, int64_t embed_dim, int64_t tokens,
                        std::vector<PlacedBlock>& placed) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    placed.push_back({fmt::format("blocks.{}", i), &blocks[i], embed_dim, tokens, std::nullopt});
  }
}

void trunk_token_tensors(TensorTable& table, int64_t embed_dim, int64_t tokens, bool is_distilled,
                         PosEmbed pos_embed) {
  table.add("cls_token", {whole(1), whole(1), embed(embed_dim)}, kWeightInit);
  if (is_distilled) {
    table.add("dist_token", {whole(1), whole(1), embed(embed_dim)}, kWeightInit);
  }
  const bool is_learned = pos_embed == PosEmbed::kLearned;
  table.add("pos_embed", {whole(1), whole(tokens), embed(embed_dim)},
            is_learned ? kWeightInit : Init{InitKind::kSinusoid}, /*has_decay=*/false,
            /*is_trained=*/is_learned);
}

void trunk_block_tensors(TensorTable& table, const ModelSpec& model, int64_t embed_dim,
                         bool is_distilled) {
  const std::vector<PlacedBlock> placed = placed_blocks(model);
  for (int64_t i = 0; i < std::ssize(placed); ++i) {
    table.enter_block(i);
    table.transformer_block(placed[static_cast<size_t>(i)], model.qkv_bias);
    table.skips(model, placed, i);
  }
  table.enter_block(-1);
  table.norm("norm.", embed(embed_dim));
  table.linear("head.", whole(model.num_classes), embed(embed_dim));
  if (is_distilled) table.linear("head_dist.", whole(model.num_classes), embed(embed_dim));
}

void check_tokens(int64_t tokens) {
  if (tokens < 1 || tokens > kMostTokens) {
    throw Error(ErrorKind::kConfig,
                fmt::format("model: makes {} tokens, must be 1 to {}", tokens, kMostTokens));
  }
}

}  // namespace adjoin
