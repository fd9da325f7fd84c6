#pragma once

// What a network costs, counted from tensors(spec) and ops(spec): parameters, multiply-accumulates,
// bytes. One MAC is one multiply-add; biases, norms, softmax, GELU and additions count nothing. A
// complex product counts four, a Fourier transform of m numbers 2 m log2 m.

#include <string>
#include <vector>

#include "adjoin/core/json.h"
#include "adjoin/spec/ops.h"
#include "adjoin/spec/tensors.h"

namespace adjoin {

/// MACs by what does them. The products between tokens are "attention".
struct Macs {
  int64_t linear = 0;
  int64_t conv = 0;
  int64_t attention_qk = 0;
  int64_t attention_av = 0;
  int64_t performer_features = 0;
  int64_t performer_kv = 0;
  int64_t performer_q_kv = 0;
  int64_t performer_norm = 0;
  int64_t attention_other = 0;  ///< projections of tokens, hashes, what sums are divided by
  int64_t shortcut = 0;         ///< circulant: two transforms and a product between them

  int64_t without_attention() const { return linear + conv + shortcut; }
  int64_t total() const {
    return without_attention() + attention_qk + attention_av + performer_features + performer_kv +
           performer_q_kv + performer_norm + attention_other;
  }
  Macs& operator+=(const Macs& other);
};

/// Of a Fourier transform of m numbers.
int64_t fourier_macs(int64_t m);

/// Of one op for one image.
Macs macs(const Op& op);

struct BlockCost {
  std::string name;
  int64_t heads = 0;
  int64_t hidden = 0;
  int64_t params = 0;
  int64_t macs = 0;
};

struct Cost {
  int64_t params = 0;            ///< every stored parameter
  int64_t params_trainable = 0;  ///< without the fixed ones
  Macs macs;                     ///< of one image
  int64_t weight_bytes = 0;      ///< of the stored parameters in float32
  int64_t activation_bytes = 0;  ///< of all values one image makes on its way, in float32,
                                 ///< attention matrices included: what training holds per image
  std::vector<BlockCost> blocks;
};

Cost cost(const ModelSpec& spec);

/// {"model","params","params_trainable","macs","macs_without_attention","weight_bytes",
///  "activation_bytes","blocks":[{"name","heads","hidden","params","macs"}]}
Json cost_to_json(const std::string& model, const Cost& cost);

/// {"large":{..},"ratio":{"params","macs"}}: the large network, and the small one's share of it.
Json cost_comparison(const std::string& model, const Cost& large, const Cost& small);

}  // namespace adjoin
