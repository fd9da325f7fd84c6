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

void TensorTable::transformer_block(const std::string& prefix, const BlockSpec& block,
                                    int64_t embed_dim, bool qkv_bias, int64_t bias_table) {
  norm(prefix + "norm1.", embed(embed_dim));
  if (bias_table > 0) {
    add(prefix + "attn.relative_position_bias_table", {whole(bias_table), heads(block.heads, 1)},
        kWeightInit);
  }
  linear(prefix + "attn.qkv.", heads(block.heads, block.head_dim, 3), embed(embed_dim), qkv_bias);
  if (block.mixer.kind == MixerKind::kRelative) {
    for (const char* table : kRelativeTables) {
      add(prefix + "attn." + table, {whole(relative_rows(block.mixer)), whole(block.head_dim)},
          kWeightInit);
    }
  }
  linear(prefix + "attn.proj.", embed(embed_dim), heads(block.heads, block.head_dim));
  norm(prefix + "norm2.", embed(embed_dim));
  linear(prefix + "mlp.fc1.", hidden(block.hidden), embed(embed_dim));
  linear(prefix + "mlp.fc2.", embed(embed_dim), hidden(block.hidden));
}

}  // namespace adjoin
