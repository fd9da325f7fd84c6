#pragma once

// What keeps the tokens of a network apart: its residual after every block with parts of the blocks
// left out. Attention alone loses rank doubly exponentially with depth, skips keep it (Dong,
// Cordonnier and Loukas 2021), augmented shortcuts keep more (Tang et al. 2021).

#include <string>
#include <vector>

#include "adjoin/analysis/inspect.h"

namespace adjoin::analysis {

/// Of the tokens that enter the first block and after every block, means of images.
struct DepthCurve {
  std::string name;                        ///< "attention", "attention + MLP", ..
  std::vector<double> diversity;           ///< |res X_l| / |res X_0|, Frobenius: what theory bounds
  std::vector<double> residual_frobenius;  ///< |res X_l| / |X_l|
  std::vector<double> residual_composite;
};

/// Attention alone, with MLPs, with norms, with skips, with skips and shortcuts (where the network
/// has some), and the whole network; in float64.
std::vector<DepthCurve> depth_curves(const Network& network, const torch::Tensor& images);

Json to_json(const std::vector<DepthCurve>& curves);

}  // namespace adjoin::analysis
