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

torch::Tensor mix(const PlacedBlock& placed, const Weights& weights, const torch::Tensor& x,
                  const Context& context) {
  const BlockSpec& block = *placed.block;
  const Mixer& mixer = block.mixer;
  const std::string prefix = placed.name + ".attn.";
  const double scale = 1 / std::sqrt(static_cast<double>(block.head_dim));
  const int64_t windows = placed.window ? placed.window->count() : 1;
  const int64_t tokens = x.size(1) / windows;
  const auto apart = x.reshape({x.size(0) * windows, tokens, x.size(2)});
  if (mixer.kind == MixerKind::kLsh) {
    const auto parts = project_heads(weights, prefix + "qv.", apart, block.heads, 2);
    return lsh_attention(parts[0], parts[1], weights.at(prefix + kLshRotations), mixer, scale)
        .transpose(1, 2)
        .flatten(2);
  }
  auto heads = project_heads(weights, prefix + "qkv.", apart, block.heads);
  if (placed.window) {
    for (torch::Tensor& part : heads) part = part.unflatten(0, {x.size(0), windows});
  }
  const torch::Tensor &q = heads[0], &k = heads[1], &v = heads[2];  // (B, [W,] H, N, d)
  const auto mixed = [&] {
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
      case MixerKind::kSoftmax:
      case MixerKind::kLsh: break;
    }
    if (!placed.window) return scaled_dot_product(q, k, v, scale, {});
    return window_attention(weights, prefix, q, k, v, scale, *placed.window, context);
  }();
  return mixed.transpose(-3, -2).reshape({x.size(0), x.size(1), block.attention_dim()});
}

}  // namespace adjoin::nn
