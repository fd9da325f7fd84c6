#pragma once

// T2T-ViT (Yuan et al. 2021): overlapping soft splits with small attention layers between them
// instead of patches, fixed sinusoid positions, then ViT blocks.

#include <vector>

#include "adjoin/spec/block.h"

namespace adjoin {

struct ModelSpec;
struct Op;
struct TensorInfo;

/// What stands between two soft splits: linear-time performer attention, or softmax attention.
enum class TokensKind { kPerformer, kTransformer };

template <>
inline constexpr auto kEnumNames<TokensKind> = std::to_array<EnumName<TokensKind>>(
    {{"performer", TokensKind::kPerformer}, {"transformer", TokensKind::kTransformer}});

/// One unfold of the image of tokens.
struct Split {
  int64_t kernel = 3;
  int64_t stride = 2;
  int64_t padding = 1;

  bool operator==(const Split&) const = default;
};

template <class Visitor>
void fields(Visitor& visit, Split& split) {
  visit("kernel", split.kernel, Range{1, 64});
  visit("stride", split.stride, Range{1, 64});
  visit("padding", split.padding, Range{0, 32});
}

struct TokensSpec {
  TokensKind kind = TokensKind::kPerformer;
  std::vector<Split> splits;
  int64_t dim = 64;  ///< width of the token layers between the splits

  bool operator==(const TokensSpec&) const = default;
};

template <class Visitor>
void fields(Visitor& visit, TokensSpec& tokens) {
  visit("kind", tokens.kind);
  visit("splits", tokens.splits);
  visit("dim", tokens.dim, Range{2, 1024});
}

struct T2tSpec {
  TokensSpec tokens;
  int64_t embed_dim = 384;
  PoolKind pool = PoolKind::kToken;
  PosEmbed pos_embed = PosEmbed::kSinusoid;
  std::vector<BlockSpec> blocks;

  bool operator==(const T2tSpec&) const = default;
};

template <class Visitor>
void fields(Visitor& visit, T2tSpec& t2t) {
  visit("tokens", t2t.tokens);
  visit("embed_dim", t2t.embed_dim, Range{1, 16384});
  visit("pool", t2t.pool);
  visit("pos_embed", t2t.pos_embed);
  visit("blocks", t2t.blocks);
}

/// What one soft split sees and gives.
struct SplitShape {
  int64_t in_channels;   ///< channels of the image of tokens it unfolds
  int64_t out_grid;      ///< tokens per side afterwards
  int64_t out_features;  ///< in_channels x kernel x kernel
};

/// The shapes along the soft splits, first to last.
std::vector<SplitShape> split_shapes(const ModelSpec& model, const T2tSpec& t2t);

/// Random features of a performer token layer: half its width.
inline int64_t performer_features(const TokensSpec& tokens) { return tokens.dim / 2; }

void validate_family(const ModelSpec& model, const T2tSpec& t2t);
std::vector<TensorInfo> tensors_of(const ModelSpec& model, const T2tSpec& t2t);
std::vector<Op> ops_of(const ModelSpec& model, const T2tSpec& t2t);

}  // namespace adjoin
