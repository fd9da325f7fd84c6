#include "adjoin/spec/catalog.h"

#include <array>
#include <optional>

namespace adjoin {
namespace {

/// What the rows of all families have in common.
struct Input {
  int64_t img_size = 224;
  int64_t in_chans = 3;
  int64_t num_classes = 1000;
};
constexpr Input kMini28{28, 1, 10};
constexpr Input kMini32{32, 3, 10};

struct VitPreset {
  std::string_view name;
  Input input = {};
  int64_t patch_size = 16;
  int64_t embed_dim = 0;
  int64_t depth = 12;
  int64_t heads = 0;
  int64_t mlp_ratio = 4;
  bool distilled = false;
};

constexpr VitPreset kVitModels[] = {
    {.name = "deit_tiny_patch16_224", .embed_dim = 192, .heads = 3},
    {.name = "deit_small_patch16_224", .embed_dim = 384, .heads = 6},
    {.name = "deit_base_patch16_224", .embed_dim = 768, .heads = 12},
    {.name = "deit_tiny_distilled_patch16_224", .embed_dim = 192, .heads = 3, .distilled = true},
    {.name = "deit_small_distilled_patch16_224", .embed_dim = 384, .heads = 6, .distilled = true},
    {.name = "deit_base_distilled_patch16_224", .embed_dim = 768, .heads = 12, .distilled = true},
    {.name = "vit_tiny_patch16_224", .embed_dim = 192, .heads = 3},
    {.name = "vit_small_patch16_224", .embed_dim = 384, .heads = 6},
    {.name = "vit_base_patch16_224", .embed_dim = 768, .heads = 12},
    {.name = "vit_large_patch16_224", .embed_dim = 1024, .depth = 24, .heads = 16},
    {.name = "vit_mini_28",
     .input = kMini28,
     .patch_size = 7,
     .embed_dim = 64,
     .depth = 4,
     .heads = 8,
     .mlp_ratio = 2},
    {.name = "vit_mini_32",
     .input = kMini32,
     .patch_size = 4,
     .embed_dim = 256,
     .depth = 8,
     .heads = 8,
     .mlp_ratio = 2},
};

struct T2tPreset {
  std::string_view name;
  Input input = {};
  TokensKind kind = TokensKind::kPerformer;
  int64_t embed_dim = 0;
  int64_t depth = 0;
  int64_t heads = 0;
  int64_t mlp_ratio = 3;
  bool is_mini = false;  ///< two soft splits that leave a quarter of the grid
};

constexpr T2tPreset kT2tModels[] = {
    {.name = "t2t_vit_7", .embed_dim = 256, .depth = 7, .heads = 4, .mlp_ratio = 2},
    {.name = "t2t_vit_10", .embed_dim = 256, .depth = 10, .heads = 4, .mlp_ratio = 2},
    {.name = "t2t_vit_12", .embed_dim = 256, .depth = 12, .heads = 4, .mlp_ratio = 2},
    {.name = "t2t_vit_14", .embed_dim = 384, .depth = 14, .heads = 6},
    {.name = "t2t_vit_19", .embed_dim = 448, .depth = 19, .heads = 7},
    {.name = "t2t_vit_24", .embed_dim = 512, .depth = 24, .heads = 8},
    {.name = "t2t_vit_t_14",
     .kind = TokensKind::kTransformer,
     .embed_dim = 384,
     .depth = 14,
     .heads = 6},
    {.name = "t2t_vit_t_19",
     .kind = TokensKind::kTransformer,
     .embed_dim = 448,
     .depth = 19,
     .heads = 7},
    {.name = "t2t_vit_t_24",
     .kind = TokensKind::kTransformer,
     .embed_dim = 512,
     .depth = 24,
     .heads = 8},
    {.name = "t2t_mini_28",
     .input = kMini28,
     .embed_dim = 128,
     .depth = 6,
     .heads = 8,
     .mlp_ratio = 2,
     .is_mini = true},
    {.name = "t2t_mini_32",
     .input = kMini32,
     .embed_dim = 128,
     .depth = 6,
     .heads = 8,
     .mlp_ratio = 2,
     .is_mini = true},
};

struct SwinPreset {
  std::string_view name;
  Input input = {};
  int64_t patch_size = 4;
  int64_t window = 7;
  int64_t embed_dim = 0;
  std::array<int64_t, 4> depths{};  ///< 0: there is no such stage
  int64_t heads = 0;                ///< of the first stage; every stage doubles them
  int64_t mlp_ratio = 4;
};

constexpr SwinPreset kSwinModels[] = {
    {.name = "swin_tiny_patch4_window7_224", .embed_dim = 96, .depths = {2, 2, 6, 2}, .heads = 3},
    {.name = "swin_small_patch4_window7_224", .embed_dim = 96, .depths = {2, 2, 18, 2}, .heads = 3},
    {.name = "swin_base_patch4_window7_224", .embed_dim = 128, .depths = {2, 2, 18, 2}, .heads = 4},
    {.name = "swin_large_patch4_window7_224",
     .embed_dim = 192,
     .depths = {2, 2, 18, 2},
     .heads = 6},
    {.name = "swin_base_patch4_window12_384",
     .input = {.img_size = 384},
     .window = 12,
     .embed_dim = 128,
     .depths = {2, 2, 18, 2},
     .heads = 4},
    {.name = "swin_mini_28",
     .input = kMini28,
     .patch_size = 2,
     .embed_dim = 64,
     .depths = {2, 4},
     .heads = 4,
     .mlp_ratio = 2},
    {.name = "swin_mini_32",
     .input = kMini32,
     .patch_size = 2,
     .window = 4,
     .embed_dim = 64,
     .depths = {2, 4},
     .heads = 4,
     .mlp_ratio = 2},
};

ModelSpec with_input(std::string_view name, const Input& input) {
  ModelSpec spec;
  spec.name = name;
  spec.img_size = input.img_size;
  spec.in_chans = input.in_chans;
  spec.num_classes = input.num_classes;
  return spec;
}

BlockSpec block_at(int64_t origin, int64_t embed_dim, int64_t heads, int64_t mlp_ratio) {
  BlockSpec block;
  block.origin = origin;
  block.heads = heads;
  block.head_dim = embed_dim / heads;
  block.hidden = embed_dim * mlp_ratio;
  return block;
}

ModelSpec expand(const VitPreset& row) {
  ModelSpec spec = with_input(row.name, row.input);
  VitSpec vit;
  vit.patch_size = row.patch_size;
  vit.embed_dim = row.embed_dim;
  vit.distilled = row.distilled;
  for (int64_t i = 0; i < row.depth; ++i) {
    vit.blocks.push_back(block_at(i, row.embed_dim, row.heads, row.mlp_ratio));
  }
  spec.family = std::move(vit);
  return spec;
}

ModelSpec expand(const T2tPreset& row) {
  ModelSpec spec = with_input(row.name, row.input);
  spec.qkv_bias = false;
  spec.norm_eps = 1e-5;
  T2tSpec t2t;
  t2t.tokens.kind = row.kind;
  t2t.tokens.splits = {{3, 2, 1}, {3, 2, 1}};
  if (!row.is_mini) t2t.tokens.splits.insert(t2t.tokens.splits.begin(), {7, 4, 2});
  t2t.embed_dim = row.embed_dim;
  for (int64_t i = 0; i < row.depth; ++i) {
    t2t.blocks.push_back(block_at(i, row.embed_dim, row.heads, row.mlp_ratio));
  }
  spec.family = std::move(t2t);
  return spec;
}

ModelSpec expand(const SwinPreset& row) {
  ModelSpec spec = with_input(row.name, row.input);
  spec.norm_eps = 1e-5;
  SwinSpec swin;
  swin.patch_size = row.patch_size;
  swin.window = row.window;
  int64_t origin = 0;
  for (size_t s = 0; s < row.depths.size() && row.depths[s] > 0; ++s) {
    SwinStage stage;
    stage.embed_dim = row.embed_dim << s;
    for (int64_t b = 0; b < row.depths[s]; ++b) {
      SwinBlockSpec block{block_at(origin++, stage.embed_dim, row.heads << s, row.mlp_ratio)};
      block.shift = b % 2 == 0 ? 0 : odd_block_shift(spec, swin, s);
      stage.blocks.push_back(block);
    }
    swin.stages.push_back(std::move(stage));
  }
  spec.family = std::move(swin);
  return spec;
}

template <class Row, size_t N>
std::optional<ModelSpec> find(std::string_view name, const Row (&rows)[N]) {
  for (const Row& row : rows) {
    if (row.name == name) return expand(row);
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> catalog_names() {
  std::vector<std::string> names;
  for (const auto& row : kVitModels) names.emplace_back(row.name);
  for (const auto& row : kT2tModels) names.emplace_back(row.name);
  for (const auto& row : kSwinModels) names.emplace_back(row.name);
  return names;
}

ModelSpec catalog_spec(std::string_view name) {
  const std::string_view untagged = name.substr(0, name.find('.'));
  if (auto spec = find(untagged, kVitModels)) return *std::move(spec);
  if (auto spec = find(untagged, kT2tModels)) return *std::move(spec);
  if (auto spec = find(untagged, kSwinModels)) return *std::move(spec);
  const std::vector<std::string> names = catalog_names();
  throw Error(ErrorKind::kUsage,
              fmt::format("unknown model \"{}\"{}", name, suggestion(untagged, names)));
}

}  // namespace adjoin
