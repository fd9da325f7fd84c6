#pragma once

// The first of the two tables: every tensor of a network, with what its consumers need to know:
// shape, start value, weight decay, and which axes are heads, hidden units or residual channels.

#include <string>
#include <vector>

#include "adjoin/spec/model_spec.h"

namespace adjoin {

/// What an axis counts, and so what a slice of it means.
enum class AxisKind { kWhole, kEmbed, kHeads, kHidden };

/// An axis of groups x count x unit entries of which a smaller network keeps the first `count'` in
/// every group. The rows of a fused qkv are {kHeads, 3, heads, head_dim}.
struct Axis {
  AxisKind kind = AxisKind::kWhole;
  int64_t groups = 1;
  int64_t count = 1;
  int64_t unit = 1;

  int64_t size() const { return groups * count * unit; }
};

inline Axis whole(int64_t size) { return {AxisKind::kWhole, 1, size, 1}; }
inline Axis embed(int64_t dim, int64_t groups = 1) { return {AxisKind::kEmbed, groups, dim, 1}; }
inline Axis hidden(int64_t units) { return {AxisKind::kHidden, 1, units, 1}; }
inline Axis heads(int64_t count, int64_t unit, int64_t groups = 1) {
  return {AxisKind::kHeads, groups, count, unit};
}

enum class InitKind {
  kZeros,
  kOnes,
  kNormal,      ///< N(0, scale^2), cut at +-2 (timm's trunc_normal: the cut is absolute)
  kUniform,     ///< U(-scale, scale)
  kSinusoid,    ///< position p, channel j: sin or cos of p / 10000^(2 floor(j/2) / channels)
  kOrthogonal,  ///< orthonormal rows times scale
};

struct Init {
  InitKind kind = InitKind::kZeros;
  double scale = 0;
};

struct TensorInfo {
  std::string name;  ///< timm >= 0.9.6 for ViT and Swin, the official names for T2T
  std::vector<Axis> axes;
  Init init;
  bool has_decay = false;
  bool is_trained = true;
  int64_t block = -1;  ///< which of placed_blocks(spec) owns it; -1: none

  std::vector<int64_t> shape() const;
  int64_t numel() const;
};

/// Whether it is the matrix that brings the heads or hidden units of a block back into the residual
/// stream: (embed, heads or hidden).
bool is_output_matrix(const TensorInfo& info);

/// Every stored tensor of the network, in the order the forward pass meets its modules.
std::vector<TensorInfo> tensors(const ModelSpec& spec);

/// How the tensors of a skip of kind circulant begin, "blocks.4.skip1.": the block it goes to, and
/// the origin of the one it comes from, which stays when other blocks are removed.
std::string skip_prefix(const PlacedBlock& from, const PlacedBlock& to);

/// The name a tensor has in its authors' own code: `layers.0.downsample` where timm says
/// `layers.1.downsample`, `head` where timm says `head.fc`; the same name elsewhere.
std::string official_name(const ModelSpec& spec, const std::string& name);

/// Collects rows with the start values and decay rules that all families share.
class TensorTable {
 public:
  explicit TensorTable(std::vector<TensorInfo>& rows) : rows_(rows) {}

  /// Rows added from here on belong to this block.
  void enter_block(int64_t block) { block_ = block; }

  void add(std::string name, std::vector<Axis> axes, Init init, bool has_decay = false,
           bool is_trained = true);
  void linear(const std::string& prefix, Axis out, Axis in, bool has_bias = true);
  void norm(const std::string& prefix, Axis width);
  void patch_conv(const std::string& prefix, int64_t embed_dim, int64_t in_chans, int64_t patch);

  /// The block's norms, attention, MLP, and what its mixer and its shortcut have.
  void transformer_block(const PlacedBlock& placed, bool qkv_bias);

  /// What the skips into a block have.
  void skips(const ModelSpec& model, const std::vector<PlacedBlock>& placed, int64_t index);

 private:
  void mixer(const PlacedBlock& placed, bool qkv_bias);
  void shortcut(const std::string& prefix, const std::optional<Shortcut>& augmented,
                int64_t embed_dim);

  std::vector<TensorInfo>& rows_;
  int64_t block_ = -1;
};

inline constexpr Init kWeightInit{InitKind::kNormal, 0.02};

// Names of tensors that some blocks have, after the block's own or "..attn.".
inline constexpr const char* kWindowBias = "relative_position_bias_table";
inline constexpr const char* kLinformerTensors[] = {"proj_k", "proj_v"};
inline constexpr const char* kLshRotations = "rotations";
inline constexpr const char* kShortcuts[] = {"attn_shortcut", "mlp_shortcut"};

}  // namespace adjoin
