#include "adjoin/nn/attention/mix.h"

#include <cmath>

#include "adjoin/nn/attention/heads.h"
#include "adjoin/nn/attention/linear_attention.h"
#include "adjoin/nn/attention/linformer.h"
#include "adjoin/nn/attention/lsh.h"
#include "adjoin/nn/attention/relative.h"
#include "adjoin/nn/attention/softmax.h"
#include "adjoin/nn/attention/sparse.h"
#include "adjoin/nn/attention/window.h"
#include "adjoin/spec/tensors.h"

namespace adjoin::nn {

Heads heads_of(const PlacedBlock& placed, const Weights& weights, const torch::Tensor& x) {
  const BlockSpec& block = *placed.block;
  const std::string prefix = placed.name + ".attn.";
  const int64_t windows = placed.window ? placed.window->count() : 1;
  const auto apart = x.reshape({x.size(0) * windows, x.size(1) / windows, x.size(2)});
  if (block.mixer.kind == MixerKind::kLsh) {
    const auto parts = project_heads(weights, prefix + "qv.", apart, block.heads, 2);
    return {parts[0], {}, parts[1]};
  }
  auto parts = project_heads(weights, prefix + "qkv.", apart, block.heads);
  if (placed.window) {
    for (torch::Tensor& part : parts) part = part.unflatten(0, {x.size(0), windows});
  }
  return {parts[0], parts[1], parts[2]};
}

torch::Tensor mixed(const PlacedBlock& placed, const Weights& weights, const Heads& heads,
                    const Context& context) {
  const Mixer& mixer = placed.block->mixer;
  const std::string prefix = placed.name + ".attn.";
  const double scale = 1 / std::sqrt(static_cast<double>(placed.block->head_dim));
  const auto& [q, k, v] = heads;
  switch (mixer.kind) {
    case MixerKind::kRelative:
      return relative_attention(weights, prefix, q, k, v, scale, mixer.distance, context);
    case MixerKind::kLinformer: {
      const auto& keys = weights.at(prefix + kLinformerTensors[0]);
      const bool is_shared = mixer.share == ProjectionShare::kKeyValue;
      return linformer_attention(
          q, k, v, keys, is_shared ? keys : weights.at(prefix + kLinformerTensors[1]), scale);
    }
    case MixerKind::kSparseStrided:
    case MixerKind::kSparseFixed: return sparse_attention(q, k, v, mixer, scale, context);
    case MixerKind::kLinear:
    case MixerKind::kRecurrent: return linear_attention(q, k, v, mixer);
    case MixerKind::kLsh:
      return lsh_attention(q, v, weights.at(prefix + kLshRotations), mixer, scale);
    case MixerKind::kSoftmax: break;
  }
  if (!placed.window) return scaled_dot_product(q, k, v, scale, {}, context);
  return window_attention(weights, prefix, q, k, v, scale, *placed.window, context);
}

torch::Tensor mix(const PlacedBlock& placed, const Weights& weights, const torch::Tensor& x,
                  const Context& context) {
  return mixed(placed, weights, heads_of(placed, weights, x), context)
      .transpose(-3, -2)
      .reshape({x.size(0), x.size(1), placed.block->attention_dim()});
}

}  // namespace adjoin::nn
