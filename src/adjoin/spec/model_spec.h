#pragma once

// ModelSpec says everything about an architecture, block by block, as plain data. A compressed
// network is just another ModelSpec. `tensors(spec)` and `ops(spec)` follow from it, and everything
// else (counts, checkpoints, optimizer groups, export) follows from those two.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "adjoin/core/fields.h"
#include "adjoin/spec/swin.h"
#include "adjoin/spec/t2t.h"
#include "adjoin/spec/vit.h"

namespace adjoin {

struct ModelSpec {
  std::string name;
  int64_t img_size = 224;
  int64_t in_chans = 3;
  int64_t num_classes = 1000;
  bool qkv_bias = true;
  double norm_eps = 1e-6;
  std::variant<VitSpec, T2tSpec, SwinSpec> family;
  std::vector<Skip> skips;

  bool operator==(const ModelSpec&) const = default;
};

/// "vit", "t2t" or "swin".
std::string_view family_name(const ModelSpec& spec);

/// The JSON of a spec; `spec_from_json` reads it back to an equal spec.
Json spec_to_json(const ModelSpec& spec);

/// Strict: missing, unknown and wrong-typed fields are Error(kConfig), and so is a spec that
/// `validate` refuses.
ModelSpec spec_from_json(const Json& json);

/// Reads the fields alone, into a spec whose family is that of the JSON: what they say together is
/// not yet checked.
void read_spec_fields(const Json& json, ModelSpec& spec);

/// spec_from_json of what the file at `path` holds; every error is Error(kData) and opens with it.
ModelSpec spec_from_json(const Json& json, const std::string& path);

/// Throws Error(kConfig), naming the block and the legal values, unless the network can be built.
void validate(const ModelSpec& spec);

/// Calls `visit` with every block in the order they run.
template <class Spec, class Visit>
void for_each_block(Spec& spec, Visit visit) {
  std::visit(
      [&](auto& family) {
        if constexpr (requires { family.stages; }) {
          for (auto& stage : family.stages) {
            for (auto& block : stage.blocks) visit(block);
          }
        } else {
          for (auto& block : family.blocks) visit(block);
        }
      },
      spec.family);
}

/// A block where it stands in its network.
struct PlacedBlock {
  std::string name;  ///< "blocks.3", "layers.2.blocks.1"
  const BlockSpec* block;
  int64_t embed_dim;
  int64_t tokens;                ///< that enter it, class token included
  std::optional<Window> window;  ///< Swin
};

/// All blocks in the order they run. The pointers are into `spec`.
std::vector<PlacedBlock> placed_blocks(const ModelSpec& spec);
std::vector<PlacedBlock> placed_blocks(const ModelSpec&& spec) = delete;

/// Most tokens, blocks and channels a spec may have: every count then fits 64 bits.
inline constexpr int64_t kMostTokens = 262144;
inline constexpr int64_t kMostBlocks = 1024;
inline constexpr int64_t kMostAttentionDim = 16384;

}  // namespace adjoin
