#pragma once

// The second of the two tables: the forward pass as data. Each op names its inputs by their place
// in the list, its tensors by name, and its output shape for one image. Counts, export and the CPU
// runtime read this; tests hold the LibTorch forward to it.

#include <string>
#include <variant>
#include <vector>

#include "adjoin/spec/model_spec.h"

namespace adjoin {

/// Input index of the image itself.
inline constexpr int64_t kImage = -1;

/// Image (C, H, W) -> tokens (N, E): a convolution whose stride is its kernel, row-major.
struct PatchEmbedOp {
  std::string weight, bias;
  int64_t in_chans, patch;
};
/// Image, or tokens read as a grid, (C, G, G) -> (N, C k k), channel-major inside a token.
struct UnfoldOp {
  int64_t kernel, stride, padding;
  int64_t channels, grid;
  bool is_from_tokens;
};
/// (.., in) -> (.., out); an empty `bias` is none.
struct LinearOp {
  std::string weight, bias;
  int64_t in_features, out_features;
};
struct NormOp {
  std::string weight, bias;
  double eps;
};
/// softmax(q k^T scale [+ bias + shift mask]) v on rows [q; k; v], head-major: (N, 3 H d) -> (N, H
/// d).
struct AttentionOp {
  int64_t heads, head_dim;
  double scale;
  std::optional<Window> window;     ///< attention inside shifted windows
  std::string bias_table;           ///< relative position bias; only with a window
  std::vector<std::string> tables;  ///< of relative.h, all or none; only without a window
  int64_t distance = 0;             ///< of the tables
};
/// Of all mixers: heads of `head_dim` on rows [q; k; v], head-major: (N, 3 H d) -> (N, H d); of lsh
/// on rows [q; v].
struct Heads {
  int64_t heads, head_dim;
  double scale;  ///< of scores, where there are any
};
/// softmax(q (E^T k)^T scale) F^T v with E and F (n, k), or one of each per head.
struct LinformerOp {
  Heads heads;
  std::optional<Window> window;
  std::string keys, values;  ///< E and F; the same name where they are shared
  int64_t k;
  bool is_per_head;
};
/// Softmax over the keys that sparse.h says.
struct SparseOp {
  Heads heads;
  Mixer mixer;
};
/// Softmax over the keys that fall into a query's own chunk and the one before it, sorted by a hash
/// of what they ask (Kitaev et al. 2020).
struct LshOp {
  Heads heads;
  Mixer mixer;
  std::string rotations;  ///< (rounds, d, buckets / 2)
};
/// f(q) sum f(k) v / f(q) sum f(k), f = elu + 1 (Katharopoulos et al. 2020).
struct LinearMixerOp {
  Heads heads;
  Mixer mixer;
  std::optional<Window> window;
};
/// A matrix of blocks x blocks circulant ones, `branches` of them: (N, E) -> (N, branches E).
struct CirculantOp {
  std::string weight, bias;
  int64_t branches, blocks, width;
};
/// Adds `parts` equal parts of the channels up.
struct FoldOp {
  int64_t parts;
};
/// Times a number.
struct ScaleOp {
  double factor;
};
/// T2T's performer on rows [k; q; v]: (N, 3 d) -> (N, d) with `features` random features.
struct PerformerOp {
  std::string weight;
  int64_t dim, features;
  double eps;
};
/// Channels [begin, end).
struct SliceOp {
  int64_t begin, end;
};
/// Exact (erf) GELU.
struct GeluOp {};
/// Sum of all inputs.
struct AddOp {};
/// Adds a tensor that is the same for every image.
struct AddTensorOp {
  std::string tensor;
};
/// Puts tokens (1, 1, E) before the others, in this order.
struct PrependOp {
  std::vector<std::string> tokens;
};
/// Swin's 2x2 neighbours, (G G, C) -> (G G / 4, 4 C), offsets (0,0) (1,0) (0,1) (1,1), row first.
struct MergeOp {
  int64_t grid;
};
/// Mean of the tokens [first, first + count).
struct PoolOp {
  int64_t first, count;
};
/// Mean of all inputs.
struct AverageOp {};

using OpDetail =
    std::variant<PatchEmbedOp, UnfoldOp, LinearOp, NormOp, AttentionOp, LinformerOp, SparseOp,
                 LshOp, LinearMixerOp, CirculantOp, FoldOp, ScaleOp, PerformerOp, SliceOp, GeluOp,
                 AddOp, AddTensorOp, PrependOp, MergeOp, PoolOp, AverageOp>;

struct Op {
  std::string name;  ///< "blocks.0.attn.qkv"; a block's last op has the block's own name
  OpDetail detail;
  std::vector<int64_t> inputs;
  std::vector<int64_t> shape;  ///< of the output, without the batch
  int64_t block = -1;          ///< which of placed_blocks(spec) it belongs to; -1: none
};

/// The forward pass of one image. The last op gives the logits.
std::vector<Op> ops(const ModelSpec& spec);

/// Writes the forward pass down; every call returns the index of its output.
class OpGraph {
 public:
  explicit OpGraph(const ModelSpec& spec) : spec_(spec) {}

  int64_t add(std::string name, OpDetail detail, std::vector<int64_t> inputs,
              std::vector<int64_t> shape);
  int64_t linear(const std::string& prefix, int64_t input, int64_t out_features, bool has_bias);
  int64_t norm(const std::string& prefix, int64_t input);
  int64_t gelu(const std::string& name, int64_t input);

  /// The next of placed_blocks(spec), with the skips that end in it.
  int64_t transformer_block(int64_t input);

  /// Class token(s), positions, blocks, final norm, pool, head(s): what ViT and T2T share.
  int64_t token_trunk(int64_t patches, PoolKind pool, bool is_distilled);

  const std::vector<int64_t>& shape(int64_t index) const { return list_.at(index).shape; }
  std::vector<Op> take() { return std::move(list_); }

 private:
  /// Attention or its like, from what it reads to the heads' output.
  int64_t mixer(const PlacedBlock& placed, int64_t input);

  /// What a half of a block adds to the stream `x`, of which its branch reads `read` and gives
  /// `branch`, under the name of its sum.
  int64_t half_sum(const PlacedBlock& placed, const HalfNorms& norms, const std::string& part,
                   int64_t x, int64_t read, int64_t branch, const std::string& name);

  /// The branches of an augmented shortcut together, with the tensors under `prefix`.
  int64_t shortcut(const std::string& prefix, const Shortcut& augmented, int64_t read);

  const ModelSpec& spec_;
  std::vector<PlacedBlock> blocks_ = placed_blocks(spec_);
  std::vector<int64_t> block_outputs_;
  std::vector<Op> list_;
  int64_t block_ = -1;
};

}  // namespace adjoin
