#pragma once

// Laws and bounds of the papers beside what a network does, layer by layer.

#include "adjoin/analysis/inspect.h"

namespace adjoin::analysis {

/// A bound beside what was measured, as logarithms to base 10.
struct LawRow {
  std::string law;
  std::string layer;
  double measured = 0;
  double bound = 0;
  bool holds = true;
  bool is_proven = true;  ///< for the form that was measured
  std::string note = {};

  double margin() const { return bound - measured; }
};

/// What random projections do to attention (theorem 2.3 of the lecture notes; Linformer, Wang et
/// al. 2020).
struct LowRankRow {
  std::string layer;
  int64_t tokens = 0;
  double epsilon = 0;
  int64_t k = 0;                  ///< ceil(5 ln n / (epsilon^2 - epsilon^3))
  double success_gaussian = 0;    ///< share of |P R^T R w - P w| <= epsilon |P w|, w normal
  double success_positive = 0;    ///< the same with absolute values of such w
  std::vector<int64_t> rank_99;   ///< per head: singular values that hold 99 % of the squares
  std::vector<double> svd_error;  ///< per head: of the best matrix of rank log2 n, relative
};

struct Laws {
  std::vector<LawRow> bounds;
  std::vector<LowRankRow> low_rank;
  std::vector<std::string> notes;
};

/// In float64; the bounds on one image (1, C, H, W).
Laws laws(const Network& network, const torch::Tensor& image, uint64_t seed);

Json to_json(const Laws& laws);

}  // namespace adjoin::analysis
