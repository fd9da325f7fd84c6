#pragma once

// The attention of a network as maps of one image's tokens, its attention matrices and the
// deviations inside its layer norms frozen as the pass had them: every block is then
//
//   X -> skip(X) + sum over heads of left_h X right_h + constant
//
// and the output a sum over paths. MLPs and shortcuts with an activation are no such maps: they are
// left out of the pass. In float64.

#include <optional>
#include <vector>

#include "adjoin/analysis/inspect.h"

namespace adjoin::analysis {

/// left X right; undefined: the identity.
struct TokenMap {
  torch::Tensor left;   ///< (N, N)
  torch::Tensor right;  ///< (C, C)

  /// (.., N, C) -> (.., N, C)
  torch::Tensor operator()(const torch::Tensor& x) const;
};

struct StackLayer {
  std::vector<TokenMap> heads;
  std::optional<TokenMap> skip;
  torch::Tensor constant;  ///< (N, C)
};

struct AttentionStack {
  torch::Tensor input;  ///< (N, C)
  std::vector<StackLayer> layers;
  torch::Tensor output;  ///< (N, C), as the network's own functions compute it
  std::vector<std::string> notes;
};

struct StackOptions {
  bool has_norms = true;
  bool has_skips = true;
};

/// `image`: (1, C, H, W). Error(kConfig) for windows, whose stages have tokens of their own.
AttentionStack attention_stack(const Network& network, const torch::Tensor& image,
                               const StackOptions& options);

}  // namespace adjoin::analysis
