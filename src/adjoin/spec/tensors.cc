#include "adjoin/spec/tensors.h"

#include <cmath>

#include "adjoin/spec/relative.h"

namespace adjoin {

std::vector<int64_t> TensorInfo::shape() const {
  std::vector<int64_t> sizes;
  for (const Axis& axis : axes) sizes.push_back(axis.size());
  return sizes;
}

int64_t TensorInfo::numel() const {
  int64_t product = 1;
  for (const Axis& axis : axes) product *= axis.size();
  return product;
}

bool is_output_matrix(const TensorInfo& info) {
  if (info.axes.size() != 2 || info.axes[0].kind != AxisKind::kEmbed) return false;
  return info.axes[1].kind == AxisKind::kHeads || info.axes[1].kind == AxisKind::kHidden;
}

std::vector<TensorInfo> tensors(const ModelSpec& spec) {
  return std::visit([&](const auto& family) { return tensors_of(spec, family); }, spec.family);
}

std::string official_name(const ModelSpec& spec, const std::string& name) {
  if (!std::holds_alternative<SwinSpec>(spec.family)) return name;
  if (name.starts_with("head.fc.")) return "head." + name.substr(8);
  const size_t merge = name.find(".downsample.");
  if (merge == std::string::npos) return name;
  constexpr size_t kStage = sizeof("layers.") - 1;
  const int stage = std::stoi(name.substr(kStage, merge - kStage));
  return fmt::format("layers.{}{}", stage - 1, name.substr(merge));
}

void TensorTable::add(std::string name, std::vector<Axis> axes, Init init, bool has_decay,
                      bool is_trained) {
  rows_.push_back({std::move(name), std::move(axes), init, has_decay, is_trained, block_});
}

void TensorTable::linear(const std::string& prefix, Axis out, Axis in, bool has_bias) {
  add(prefix + "weight", {out, in}, kWeightInit, /*has_decay=*/true);
  if (has_bias) add(prefix + "bias", {out}, {InitKind::kZeros});
}

void TensorTable::norm(const std::string& prefix, Axis width) {
  add(prefix + "weight", {width}, {InitKind::kOnes});
  add(prefix + "bias", {width}, {InitKind::kZeros});
}

void TensorTable::patch_conv(const std::string& prefix, int64_t embed_dim, int64_t in_chans,
                             int64_t patch) {
  const double bound = 1 / std::sqrt(static_cast<double>(in_chans * patch * patch));
  add(prefix + "weight", {embed(embed_dim), whole(in_chans), whole(patch), whole(patch)},
      {InitKind::kUniform, bound}, /*has_decay=*/true);
  add(prefix + "bias", {embed(embed_dim)}, {InitKind::kUniform, bound});
}

void TensorTable::mixer(const PlacedBlock& placed, bool qkv_bias) {
  const BlockSpec& block = *placed.block;
  const Mixer& mixer = block.mixer;
  const std::string prefix = placed.name + ".attn.";
  const Axis width = embed(placed.embed_dim);
  const int64_t tokens = placed.window ? placed.window->tokens() : placed.tokens;
  if (placed.window && mixer.kind == MixerKind::kSoftmax) {
    const int64_t distances = 2 * placed.window->size - 1;
    add(prefix + kWindowBias, {whole(distances * distances), heads(block.heads, 1)}, kWeightInit);
  }
  const bool is_lsh = mixer.kind == MixerKind::kLsh;
  linear(prefix + (is_lsh ? "qv." : "qkv."), heads(block.heads, block.head_dim, is_lsh ? 2 : 3),
         width, qkv_bias);
  if (mixer.kind == MixerKind::kRelative) {
    for (const char* table : kRelativeTables) {
      add(prefix + table, {whole(relative_rows(mixer)), whole(block.head_dim)}, kWeightInit);
    }
  }
  if (mixer.kind == MixerKind::kLinformer) {
    const Init init{InitKind::kUniform, 1 / std::sqrt(static_cast<double>(mixer.k))};
    std::vector<Axis> axes = {whole(tokens), whole(mixer.k)};
    if (mixer.share == ProjectionShare::kNone) axes.insert(axes.begin(), heads(block.heads, 1));
    for (const char* projection : kLinformerTensors) {
      add(prefix + projection, axes, init, /*has_decay=*/true);
      if (mixer.share == ProjectionShare::kKeyValue) break;
    }
  }
  if (is_lsh) {
    add(prefix + kLshRotations,
        {whole(mixer.rounds), whole(block.head_dim), whole(lsh_chunks(mixer, tokens) / 2)},
        {InitKind::kNormal, 1}, /*has_decay=*/false, /*is_trained=*/false);
  }
  linear(prefix + "proj.", width, heads(block.heads, block.head_dim));
}

void TensorTable::shortcut(const std::string& prefix, const std::optional<Shortcut>& augmented,
                           int64_t embed_dim) {
  if (!augmented || augmented->branches == 0) return;
  const Shortcut& shortcut = *augmented;
  const Init init{InitKind::kUniform, 1 / std::sqrt(static_cast<double>(embed_dim))};
  const int64_t branches = shortcut.branches;
  if (shortcut.kind == ShortcutKind::kDense) {
    add(prefix + "weight", {embed(embed_dim, branches), embed(embed_dim)}, init,
        /*has_decay=*/true);
  } else {
    // A narrower network has fewer blocks of the same size: part of a block would not be circulant.
    const Axis blocks = embed(shortcut.blocks);
    add(prefix + "weight", {whole(branches), blocks, blocks, whole(embed_dim / shortcut.blocks)},
        init,
        /*has_decay=*/true);
  }
  add(prefix + "bias", {embed(embed_dim, branches)}, init);
}

void TensorTable::transformer_block(const PlacedBlock& placed, bool qkv_bias) {
  const BlockSpec& block = *placed.block;
  const std::string prefix = placed.name + ".";
  const Axis width = embed(placed.embed_dim);
  norm(prefix + "norm1.", width);
  mixer(placed, qkv_bias);
  shortcut(prefix + kShortcuts[0] + ".", block.shortcut, placed.embed_dim);
  norm(prefix + "norm2.", width);
  linear(prefix + "mlp.fc1.", hidden(block.hidden), width);
  linear(prefix + "mlp.fc2.", width, hidden(block.hidden));
  if (block.norm == NormPlacement::kResPost) norm(prefix + "norm3.", width);
  shortcut(prefix + kShortcuts[1] + ".", block.shortcut, placed.embed_dim);
}

void TensorTable::skips(const ModelSpec& model, const std::vector<PlacedBlock>& placed,
                        int64_t index) {
  const PlacedBlock& to = placed[static_cast<size_t>(index)];
  for (const Skip& skip : model.skips) {
    if (skip.to != index || skip.kind != SkipKind::kCirculant) continue;
    const PlacedBlock& from = placed[static_cast<size_t>(skip.from)];
    shortcut(skip_prefix(from, to), skip_shortcut(to.embed_dim), to.embed_dim);
  }
}

std::string skip_prefix(const PlacedBlock& from, const PlacedBlock& to) {
  return fmt::format("{}.skip{}.", to.name, from.block->origin);
}

}  // namespace adjoin
