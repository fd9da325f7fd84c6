#include "adjoin/spec/ops.h"

#include <cmath>

#include "adjoin/spec/relative.h"
#include "adjoin/spec/tensors.h"

namespace adjoin {

std::vector<Op> ops(const ModelSpec& spec) {
  return std::visit([&](const auto& family) { return ops_of(spec, family); }, spec.family);
}

int64_t OpGraph::add(std::string name, OpDetail detail, std::vector<int64_t> inputs,
                     std::vector<int64_t> shape) {
  list_.push_back(
      {std::move(name), std::move(detail), std::move(inputs), std::move(shape), block_});
  return static_cast<int64_t>(list_.size()) - 1;
}

int64_t OpGraph::linear(const std::string& prefix, int64_t input, int64_t out_features,
                        bool has_bias) {
  std::vector<int64_t> out = shape(input);
  const int64_t in_features = out.back();
  out.back() = out_features;
  return add(
      prefix.substr(0, prefix.size() - 1),
      LinearOp{prefix + "weight", has_bias ? prefix + "bias" : "", in_features, out_features},
      {input}, std::move(out));
}

int64_t OpGraph::norm(const std::string& prefix, int64_t input) {
  return add(prefix.substr(0, prefix.size() - 1),
             NormOp{prefix + "weight", prefix + "bias", spec_.norm_eps}, {input}, shape(input));
}

int64_t OpGraph::gelu(const std::string& name, int64_t input) {
  return add(name, GeluOp{}, {input}, shape(input));
}

int64_t OpGraph::mixer(const PlacedBlock& placed, int64_t x) {
  const BlockSpec& block = *placed.block;
  const Mixer& mixer = block.mixer;
  const std::string prefix = placed.name + ".attn.";
  const bool is_lsh = mixer.kind == MixerKind::kLsh;
  const double scale = 1 / std::sqrt(static_cast<double>(block.head_dim));
  const Heads heads{block.heads, block.head_dim, scale};
  const int64_t asked = linear(prefix + (is_lsh ? "qv." : "qkv."), x,
                               (is_lsh ? 2 : 3) * block.attention_dim(), spec_.qkv_bias);
  const auto detail = [&]() -> OpDetail {
    switch (mixer.kind) {
      case MixerKind::kLinformer: {
        const bool is_shared = mixer.share == ProjectionShare::kKeyValue;
        return LinformerOp{heads,
                           placed.window,
                           prefix + kLinformerTensors[0],
                           prefix + kLinformerTensors[is_shared ? 0 : 1],
                           mixer.k,
                           mixer.share == ProjectionShare::kNone};
      }
      case MixerKind::kSparseStrided:
      case MixerKind::kSparseFixed: return SparseOp{heads, mixer};
      case MixerKind::kLsh: return LshOp{heads, mixer, prefix + kLshRotations};
      case MixerKind::kLinear:
      case MixerKind::kRecurrent: return LinearMixerOp{heads, mixer, placed.window};
      case MixerKind::kSoftmax:
      case MixerKind::kRelative: break;
    }
    AttentionOp attention{block.heads, block.head_dim, scale, placed.window, "",
                          {},          mixer.distance};
    if (mixer.kind == MixerKind::kRelative) {
      for (const char* table : kRelativeTables) attention.tables.push_back(prefix + table);
    }
    if (placed.window) attention.bias_table = prefix + kWindowBias;
    return attention;
  };
  return add(placed.name + ".attn", detail(), {asked}, {shape(x)[0], block.attention_dim()});
}

int64_t OpGraph::shortcut(const std::string& prefix, const Shortcut& augmented, int64_t read) {
  const std::string name = prefix.substr(0, prefix.size() - 1);
  const std::vector<int64_t> stream = shape(read);
  const int64_t wide = augmented.branches * stream[1];
  int64_t more = augmented.kind == ShortcutKind::kDense
                     ? linear(prefix, read, wide, true)
                     : add(name,
                           CirculantOp{prefix + "weight", prefix + "bias", augmented.branches,
                                       augmented.blocks, stream[1]},
                           {read}, {stream[0], wide});
  if (augmented.has_gelu) more = gelu(prefix + "act", more);
  return add(prefix + "fold", FoldOp{augmented.branches}, {more}, stream);
}

int64_t OpGraph::half_sum(const PlacedBlock& placed, const HalfNorms& norms,
                          const std::string& part, int64_t x, int64_t read, int64_t branch,
                          const std::string& name) {
  const std::string prefix = placed.name + ".";
  const std::vector<int64_t> stream = shape(x);
  if (norms.after != nullptr) branch = norm(prefix + norms.after, branch);
  std::vector<int64_t> terms = {x, branch};
  const auto& augmented = placed.block->shortcut;
  if (augmented && augmented->branches > 0) {
    terms.push_back(shortcut(prefix + part + ".", *augmented, read));
  }
  const bool is_scaled = augmented && augmented->scale != 1;
  const bool has_more = is_scaled || norms.last != nullptr;
  int64_t sum = add(has_more ? name + ".sum" : name, AddOp{}, terms, stream);
  if (is_scaled) {
    sum = add(norms.last != nullptr ? name + ".scale" : name, ScaleOp{augmented->scale}, {sum},
              stream);
  }
  if (norms.last != nullptr) {
    const std::string last = prefix + norms.last;
    sum = add(name, NormOp{last + "weight", last + "bias", spec_.norm_eps}, {sum}, stream);
  }
  return sum;
}

int64_t OpGraph::transformer_block(int64_t x) {
  const auto index = static_cast<int64_t>(block_outputs_.size());
  const PlacedBlock& placed = blocks_.at(index);
  const BlockSpec& block = *placed.block;
  const std::string prefix = placed.name + ".";
  block_ = index;
  for (const Skip& skip : spec_.skips) {
    if (skip.to != index) continue;
    int64_t from = block_outputs_.at(skip.from);
    const std::string own = skip_prefix(blocks_.at(skip.from), placed);
    if (skip.kind == SkipKind::kCirculant) from = shortcut(own, skip_shortcut(shape(x)[1]), from);
    x = add(own + "add", AddOp{}, {x, from}, shape(x));
  }
  const int64_t width = shape(x)[1];
  const auto read_by = [&](const HalfNorms& norms, int64_t stream) {
    return norms.before == nullptr ? stream : norm(prefix + norms.before, stream);
  };
  const HalfNorms of_attention = attention_norms(block.norm);
  const int64_t whole = read_by(of_attention, x);
  const int64_t proj = linear(prefix + "attn.proj.", mixer(placed, whole), width, true);
  const int64_t y = half_sum(placed, of_attention, kShortcuts[0], x, whole, proj, prefix + "add1");
  const HalfNorms of_mlp = mlp_norms(block.norm);
  const int64_t mixed = read_by(of_mlp, y);
  const int64_t fc1 = linear(prefix + "mlp.fc1.", mixed, block.hidden, true);
  const int64_t act = gelu(prefix + "mlp.act", fc1);
  const int64_t fc2 = linear(prefix + "mlp.fc2.", act, width, true);
  block_outputs_.push_back(half_sum(placed, of_mlp, kShortcuts[1], y, mixed, fc2, placed.name));
  block_ = -1;
  return block_outputs_.back();
}

int64_t OpGraph::token_trunk(int64_t patches, PoolKind pool, bool is_distilled) {
  std::vector<std::string> tokens = {"cls_token"};
  if (is_distilled) tokens.emplace_back("dist_token");
  const auto prefix = static_cast<int64_t>(tokens.size());
  const int64_t count = shape(patches)[0];
  const std::vector<int64_t> stream = {count + prefix, shape(patches)[1]};
  int64_t x = add("tokens", PrependOp{tokens}, {patches}, stream);
  x = add("pos_embed", AddTensorOp{"pos_embed"}, {x}, stream);
  for (size_t i = 0; i < blocks_.size(); ++i) x = transformer_block(x);
  x = norm("norm.", x);
  const auto head = [&](const std::string& name, int64_t token) {
    const PoolOp detail = pool == PoolKind::kToken ? PoolOp{token, 1} : PoolOp{prefix, count};
    const int64_t pooled = add(name + ".pool", detail, {x}, {stream[1]});
    return linear(name + ".", pooled, spec_.num_classes, true);
  };
  const int64_t logits = head("head", 0);
  if (!is_distilled) return logits;
  const int64_t dist = head("head_dist", 1);
  return add("head_mean", AverageOp{}, {logits, dist}, {spec_.num_classes});
}

}  // namespace adjoin
