#include "adjoin/spec/ops.h"

#include <cmath>

#include "adjoin/spec/relative.h"

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

int64_t OpGraph::transformer_block(int64_t x) {
  const auto index = static_cast<int64_t>(block_outputs_.size());
  const PlacedBlock& placed = blocks_.at(index);
  const BlockSpec& block = *placed.block;
  const std::string prefix = placed.name + ".";
  block_ = index;
  for (const Skip& skip : spec_.skips) {
    if (skip.to != index) continue;
    x = add(fmt::format("{}skip{}", prefix, skip.from), AddOp{}, {x, block_outputs_.at(skip.from)},
            shape(x));
  }
  const std::vector<int64_t> stream = shape(x);
  const int64_t norm1 = norm(prefix + "norm1.", x);
  const int64_t qkv =
      linear(prefix + "attn.qkv.", norm1, 3 * block.attention_dim(), spec_.qkv_bias);
  AttentionOp attention{.heads = block.heads,
                        .head_dim = block.head_dim,
                        .scale = 1 / std::sqrt(static_cast<double>(block.head_dim)),
                        .window = placed.window,
                        .bias_table = "",
                        .tables = {},
                        .distance = block.mixer.distance};
  if (block.mixer.kind == MixerKind::kRelative) {
    for (const char* table : kRelativeTables) {
      attention.tables.push_back(prefix + "attn." + table);
    }
  }
  if (placed.window) attention.bias_table = prefix + "attn.relative_position_bias_table";
  const int64_t mixed = add(prefix + "attn", attention, {qkv}, {stream[0], block.attention_dim()});
  const int64_t proj = linear(prefix + "attn.proj.", mixed, stream[1], true);
  const int64_t y = add(prefix + "add1", AddOp{}, {x, proj}, stream);
  const int64_t norm2 = norm(prefix + "norm2.", y);
  const int64_t fc1 = linear(prefix + "mlp.fc1.", norm2, block.hidden, true);
  const int64_t act = gelu(prefix + "mlp.act", fc1);
  const int64_t fc2 = linear(prefix + "mlp.fc2.", act, stream[1], true);
  block_outputs_.push_back(add(placed.name, AddOp{}, {y, fc2}, stream));
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
