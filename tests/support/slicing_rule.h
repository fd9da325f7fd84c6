#pragma once

// The slicing rules name by name, written down a second time and by other means than the tables of
// spec/: which entries of each axis of a large network's tensor a small network has.

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "adjoin/spec/derive.h"
#include "adjoin/tensor/torch.h"

namespace adjoin {

class SlicingRule {
 public:
  /// `factor` divides the residual width: 1 in geometry kept.
  SlicingRule(const ModelSpec& large, const ModelSpec& small, int64_t factor)
      : large_(large), small_(small), factor_(factor) {}

  /// The name the tensor has in the large network.
  std::string large_name(const std::string& name) const {
    for (const PlacedBlock& block : placed_blocks(small_)) {
      if (!name.starts_with(block.name + ".")) continue;
      return origin_of(block).name + name.substr(block.name.size());
    }
    return name;
  }

  /// Entries of every axis; an undefined tensor means all of them.
  std::vector<torch::Tensor> entries(const std::string& name) const {
    for (const PlacedBlock& block : placed_blocks(small_)) {
      if (!name.starts_with(block.name + ".")) continue;
      return in_block(name.substr(block.name.size() + 1), *block.block, *origin_of(block).block,
                      block.embed_dim, factor_);
    }
    return outside(name);
  }

 private:
  static bool is(const std::string& name, std::initializer_list<const char*> names) {
    for (const char* candidate : names) {
      if (name == candidate) return true;
    }
    return false;
  }

  static torch::Tensor first(int64_t count) { return torch::arange(count); }

  /// The first `count` of each of `groups` runs of `of`.
  static torch::Tensor of_each(int64_t groups, int64_t of, int64_t count) {
    std::vector<int64_t> places;
    for (int64_t i = 0; i < groups * of; ++i) {
      if (i % of < count) places.push_back(i);
    }
    return torch::tensor(places, torch::kInt64);
  }

  PlacedBlock origin_of(const PlacedBlock& block) const {
    for (const PlacedBlock& candidate : placed_blocks(large_)) {
      if (candidate.block->origin == block.block->origin) return candidate;
    }
    throw std::runtime_error("no block of this origin");
  }

  static std::vector<torch::Tensor> in_block(const std::string& name, const BlockSpec& small,
                                             const BlockSpec& large, int64_t width,
                                             int64_t factor) {
    const int64_t d = large.head_dim;
    const auto qkv = of_each(3, large.heads * d, small.heads * d);
    if (name == "attn.qkv.weight") return {qkv, first(width)};
    if (name == "attn.qkv.bias") return {qkv};
    if (name == "attn.proj.weight") return {first(width), first(small.heads * d)};
    const auto qv = of_each(2, large.heads * d, small.heads * d);
    if (name == "attn.qv.weight") return {qv, first(width)};
    if (name == "attn.qv.bias") return {qv};
    if (name == "attn.rotations") return {{}, {}, {}};
    if (name == "attn.proj_k" || name == "attn.proj_v") {
      const bool is_per_head = small.mixer.share == ProjectionShare::kNone;
      return is_per_head ? std::vector<torch::Tensor>{first(small.heads), {}, {}}
                         : std::vector<torch::Tensor>{{}, {}};
    }
    if (name.starts_with("attn_shortcut.") || name.starts_with("mlp_shortcut.")) {
      const auto columns = of_each(small.shortcut->branches, width * factor, width);
      if (name.ends_with(".bias")) return {columns};
      if (small.shortcut->kind == ShortcutKind::kDense) return {columns, first(width)};
      return {{}, first(small.shortcut->blocks), first(small.shortcut->blocks), {}};
    }
    if (name == "attn.relative_position_bias_table") return {{}, first(small.heads)};
    if (name.starts_with("attn.rel_pos_embed_")) return {{}, {}};
    if (name == "mlp.fc1.weight") return {first(small.hidden), first(width)};
    if (name == "mlp.fc1.bias") return {first(small.hidden)};
    if (name == "mlp.fc2.weight") return {first(width), first(small.hidden)};
    if (is(name, {"norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias", "attn.proj.bias",
                  "mlp.fc2.bias", "norm3.weight", "norm3.bias"})) {
      return {first(width)};
    }
    const bool is_of_skip = name.starts_with("skip") && factor == 1;
    if (is_of_skip && name.ends_with(".weight")) return {{}, {}, {}, {}};
    if (is_of_skip && name.ends_with(".bias")) return {{}};
    throw std::runtime_error("no rule for " + name);
  }

  /// Width of the residual stream in the large network, at its start and at its end.
  std::pair<int64_t, int64_t> widths() const {
    if (const auto* swin = std::get_if<SwinSpec>(&large_.family)) {
      return {swin->stages.front().embed_dim, swin->stages.back().embed_dim};
    }
    const auto* vit = std::get_if<VitSpec>(&large_.family);
    const int64_t width = vit ? vit->embed_dim : std::get<T2tSpec>(large_.family).embed_dim;
    return {width, width};
  }

  std::vector<torch::Tensor> outside(const std::string& name) const {
    const int64_t start = widths().first / factor_;
    const int64_t end = widths().second / factor_;
    if (is(name, {"cls_token", "dist_token", "pos_embed"})) return {{}, {}, first(start)};
    if (name == "patch_embed.proj.weight") return {first(start), {}, {}, {}};
    if (is(name, {"patch_embed.proj.bias", "patch_embed.norm.weight", "patch_embed.norm.bias",
                  "tokens_to_token.project.bias"})) {
      return {first(start)};
    }
    if (name == "tokens_to_token.project.weight") return {first(start), {}};
    if (name.starts_with("tokens_to_token.attention")) return {{}, {}};
    if (is(name, {"norm.weight", "norm.bias"})) return {first(end)};
    if (is(name, {"head.weight", "head.fc.weight", "head_dist.weight"})) return {{}, first(end)};
    if (is(name, {"head.bias", "head.fc.bias", "head_dist.bias"})) return {{}};
    const auto& stages = std::get<SwinSpec>(large_.family).stages;
    for (size_t s = 1; s < stages.size(); ++s) {
      const std::string prefix = fmt::format("layers.{}.downsample.", s);
      if (!name.starts_with(prefix)) continue;
      const int64_t before = stages[s - 1].embed_dim;
      const auto merged = of_each(4, before, before / factor_);
      if (!name.ends_with("reduction.weight")) return {merged};
      return {first(stages[s].embed_dim / factor_), merged};
    }
    throw std::runtime_error("no rule for " + name);
  }

  const ModelSpec& large_;
  const ModelSpec& small_;
  int64_t factor_;
};

/// The entries, cut out axis by axis.
inline torch::Tensor cut(torch::Tensor tensor, const std::vector<torch::Tensor>& entries) {
  for (size_t i = 0; i < entries.size() && static_cast<int64_t>(i) < tensor.dim(); ++i) {
    if (entries[i].defined()) tensor = tensor.index_select(static_cast<int64_t>(i), entries[i]);
  }
  return tensor;
}

/// The tensor with NaN everywhere but at the entries.
inline torch::Tensor poisoned(const torch::Tensor& tensor,
                              const std::vector<torch::Tensor>& entries) {
  auto is_inside = torch::ones(tensor.sizes(), torch::kBool);
  for (size_t i = 0; i < entries.size() && static_cast<int64_t>(i) < tensor.dim(); ++i) {
    if (!entries[i].defined()) continue;
    const auto dim = static_cast<int64_t>(i);
    auto along = torch::zeros(tensor.size(dim), torch::kBool).index_fill(0, entries[i], true);
    std::vector<int64_t> shape(static_cast<size_t>(tensor.dim()), 1);
    shape[i] = tensor.size(dim);
    is_inside = is_inside & along.view(shape);
  }
  return tensor.masked_fill(is_inside.logical_not(), std::numeric_limits<double>::quiet_NaN());
}

}  // namespace adjoin
