#include "adjoin/cost/cost.h"

#include <cmath>

#include "adjoin/spec/relative.h"
#include "adjoin/spec/sparse.h"

namespace adjoin {
namespace {

constexpr int64_t kFloatBytes = 4;

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;  // clang 14 needs to be told

int64_t product(const std::vector<int64_t>& shape) {
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  return size;
}

/// Entries of all attention matrices of an op: heads x keys per token.
int64_t attention_entries(const AttentionOp& attention, int64_t tokens) {
  const int64_t keys = attention.window ? attention.window->tokens() : tokens;
  return attention.heads * tokens * keys;
}

Macs attention_macs(const AttentionOp& attention, int64_t tokens) {
  int64_t each = attention_entries(attention, tokens) * attention.head_dim;
  if (!attention.tables.empty()) {  // rows and columns of patches, and what stands for classes
    const TokenGrid grid = token_grid(tokens);
    each += 2 * attention.heads * grid.patches() * (grid.side + 1) * attention.head_dim;
  }
  return {.attention_qk = each, .attention_av = each};
}

/// Keys that a query is compared with, all heads' queries together.
int64_t compared(const SparseOp& op, int64_t tokens) {
  const SparseLayout layout = sparse_layout(op.mixer, tokens);
  return op.heads.heads * layout.padded * (layout.near + layout.far);
}

int64_t compared(const LshOp& op, int64_t tokens) {
  const int64_t padded = lsh_chunks(op.mixer, tokens) * op.mixer.chunk;
  return op.heads.heads * op.mixer.rounds * padded * 2 * op.mixer.chunk;
}

int64_t compared(const LinformerOp& op, int64_t tokens) { return op.heads.heads * tokens * op.k; }

/// Only inside the groups of a causal sum.
int64_t compared(const LinearMixerOp& op, int64_t tokens) {
  const bool is_grouped = op.mixer.kind == MixerKind::kLinear && op.mixer.is_causal;
  if (!is_grouped) return 0;
  return op.heads.heads * linear_groups(tokens) * kLinearGroup * kLinearGroup;
}

/// Further values a mixer holds for its gradient.
int64_t held(const LshOp& op, int64_t tokens) {
  const int64_t padded = lsh_chunks(op.mixer, tokens) * op.mixer.chunk;
  const int64_t copies = 5;  // sorted: of queries, and of keys and values with the chunk before
  return compared(op, tokens) +
         copies * op.heads.heads * op.mixer.rounds * padded * op.heads.head_dim;
}

/// A sum of keys and values per token.
int64_t held(const LinearMixerOp& op, int64_t tokens) {
  const bool is_kept = op.mixer.kind == MixerKind::kRecurrent && op.mixer.is_causal;
  return is_kept ? op.heads.heads * tokens * op.heads.head_dim * op.heads.head_dim : 0;
}

Macs mixer_macs(const LinformerOp& op, int64_t tokens) {
  const int64_t each = compared(op, tokens) * op.heads.head_dim;
  return {.attention_qk = each, .attention_av = each, .attention_other = 2 * each};
}

Macs mixer_macs(const SparseOp& op, int64_t tokens) {
  const int64_t each = compared(op, tokens) * op.heads.head_dim;
  return {.attention_qk = each, .attention_av = each};
}

Macs mixer_macs(const LshOp& op, int64_t tokens) {
  const int64_t each = compared(op, tokens) * op.heads.head_dim;
  const int64_t hashes = op.mixer.rounds * lsh_chunks(op.mixer, tokens) / 2;
  return {.attention_qk = each,
          .attention_av = each,
          .attention_other = op.heads.heads * tokens * op.heads.head_dim * hashes};
}

/// Sums of keys and values, and what queries see of them.
Macs mixer_macs(const LinearMixerOp& op, int64_t tokens) {
  const auto [heads, dim, scale] = op.heads;
  const int64_t pairs = compared(op, tokens) * dim;
  const bool is_grouped = pairs > 0;
  const int64_t summed = !is_grouped                  ? tokens
                         : linear_groups(tokens) == 1 ? 0
                                                      : linear_groups(tokens) * kLinearGroup;
  const int64_t each = heads * summed * dim * dim;
  return {.attention_qk = each + pairs,
          .attention_av = each + pairs,
          .attention_other = heads * summed * dim};
}

Macs circulant_macs(const CirculantOp& op, int64_t tokens) {
  const int64_t size = op.width / op.blocks;
  const int64_t transforms = (1 + op.branches) * op.blocks;
  const int64_t products = 4 * op.branches * op.blocks * op.blocks * (size / 2 + 1);
  return {.shortcut = tokens * (transforms * fourier_macs(size) + products)};
}

Macs performer_macs(const PerformerOp& performer, int64_t tokens) {
  const int64_t each = tokens * performer.dim * performer.features;
  return {.performer_features = 2 * each,
          .performer_kv = each,
          .performer_q_kv = each,
          .performer_norm = tokens * performer.features};
}

/// Values an op makes: its output, and what it must hold inside.
int64_t activations(const Op& op) {
  const int64_t out = product(op.shape);
  if (const auto* attention = std::get_if<AttentionOp>(&op.detail)) {
    return out + attention_entries(*attention, op.shape[0]);
  }
  if (const auto* performer = std::get_if<PerformerOp>(&op.detail)) {
    return out + 2 * op.shape[0] * performer->features;
  }
  return std::visit(
      [&](const auto& detail) {
        int64_t values = out;
        if constexpr (requires { compared(detail, op.shape[0]); }) {
          values += compared(detail, op.shape[0]);
        }
        if constexpr (requires { held(detail, op.shape[0]); }) values += held(detail, op.shape[0]);
        return values;
      },
      op.detail);
}

}  // namespace

int64_t fourier_macs(int64_t m) {
  return std::llround(2 * static_cast<double>(m) * std::log2(static_cast<double>(m)));
}

Macs& Macs::operator+=(const Macs& other) {
  linear += other.linear;
  conv += other.conv;
  attention_qk += other.attention_qk;
  attention_av += other.attention_av;
  performer_features += other.performer_features;
  performer_kv += other.performer_kv;
  performer_q_kv += other.performer_q_kv;
  performer_norm += other.performer_norm;
  attention_other += other.attention_other;
  shortcut += other.shortcut;
  return *this;
}

Macs macs(const Op& op) {
  const int64_t out = product(op.shape);
  return std::visit(
      Overloaded{
          [&](const PatchEmbedOp& o) { return Macs{.conv = out * o.in_chans * o.patch * o.patch}; },
          [&](const LinearOp& o) { return Macs{.linear = out * o.in_features}; },
          [&](const AttentionOp& o) { return attention_macs(o, op.shape[0]); },
          [&](const LinformerOp& o) { return mixer_macs(o, op.shape[0]); },
          [&](const SparseOp& o) { return mixer_macs(o, op.shape[0]); },
          [&](const LshOp& o) { return mixer_macs(o, op.shape[0]); },
          [&](const LinearMixerOp& o) { return mixer_macs(o, op.shape[0]); },
          [&](const CirculantOp& o) { return circulant_macs(o, op.shape[0]); },
          [&](const PerformerOp& o) { return performer_macs(o, op.shape[0]); },
          [](const FoldOp&) { return Macs{}; },
          [](const ScaleOp&) { return Macs{}; },
          [](const UnfoldOp&) { return Macs{}; },
          [](const NormOp&) { return Macs{}; },
          [](const SliceOp&) { return Macs{}; },
          [](const GeluOp&) { return Macs{}; },
          [](const AddOp&) { return Macs{}; },
          [](const AddTensorOp&) { return Macs{}; },
          [](const PrependOp&) { return Macs{}; },
          [](const MergeOp&) { return Macs{}; },
          [](const PoolOp&) { return Macs{}; },
          [](const AverageOp&) { return Macs{}; },
      },
      op.detail);
}

Cost cost(const ModelSpec& spec) {
  Cost result;
  for (const PlacedBlock& placed : placed_blocks(spec)) {
    result.blocks.push_back({placed.name, placed.block->heads, placed.block->hidden});
  }
  for (const TensorInfo& tensor : tensors(spec)) {
    result.params += tensor.numel();
    if (tensor.is_trained) result.params_trainable += tensor.numel();
    if (tensor.block >= 0) result.blocks[tensor.block].params += tensor.numel();
  }
  for (const Op& op : ops(spec)) {
    const Macs counted = macs(op);
    result.macs += counted;
    result.activation_bytes += activations(op) * kFloatBytes;
    if (op.block >= 0) result.blocks[op.block].macs += counted.total();
  }
  result.weight_bytes = result.params * kFloatBytes;
  return result;
}

Json cost_to_json(const std::string& model, const Cost& cost) {
  Json json = {{"model", model},
               {"params", cost.params},
               {"params_trainable", cost.params_trainable},
               {"macs", cost.macs.total()},
               {"macs_without_attention", cost.macs.without_attention()},
               {"weight_bytes", cost.weight_bytes},
               {"activation_bytes", cost.activation_bytes},
               {"blocks", Json::array()}};
  for (const BlockCost& block : cost.blocks) {
    json["blocks"].push_back({{"name", block.name},
                              {"heads", block.heads},
                              {"hidden", block.hidden},
                              {"params", block.params},
                              {"macs", block.macs}});
  }
  return json;
}

Json cost_comparison(const std::string& model, const Cost& large, const Cost& small) {
  const auto share = [](int64_t part, int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  return {{"large", cost_to_json(model, large)},
          {"ratio",
           {{"params", share(small.params, large.params)},
            {"macs", share(small.macs.total(), large.macs.total())}}}};
}

}  // namespace adjoin
