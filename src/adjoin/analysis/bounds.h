#pragma once

// What theory says at most is left of the tokens' variety after attention, in natural logarithms:
// the bounds grow with 3^layers.
//
// r is |res X| in the composite form of token_rank.h. Theorem 2.2 is that of Dong, Cordonnier and
// Loukas (2021) as the lecture notes on attention state it; S.2 to S.8 stand in the supplement of
// Tang et al. (2021).

#include <vector>

#include "adjoin/spec/model_spec.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::analysis {

/// Largest slope of GELU, at x = sqrt(2).
inline constexpr double kGeluSlope = 1.1289042;  // rounded up

/// The matrices of one head, (C, C): scores are X qk X^T / sqrt(d), what it gives is P X v.
struct HeadMatrices {
  torch::Tensor qk;
  torch::Tensor v;  ///< with the head's part of the projection
};

/// Of a block with softmax attention and weights of float64.
std::vector<HeadMatrices> head_matrices(const PlacedBlock& placed, const Weights& weights);

/// The largest |W_QK|_1 |W_V|_{1,inf} of the heads.
double log_beta(const std::vector<HeadMatrices>& heads);

/// log(4 H beta / sqrt(d)): one layer of attention takes r to at most this times r^3.
double log_attention_factor(double log_beta, int64_t heads, int64_t head_dim);

/// Theorem 2.2: of `layers` layers with at most this factor each, from r.
double log_stack_bound(double log_factor, double log_r, int64_t layers);

/// The matrices Theta of a shortcut's branches, (C, C) each; `which` of kShortcuts.
std::vector<torch::Tensor> branch_matrices(const PlacedBlock& placed, const Weights& weights,
                                           const char* which);

/// The factors of a block in S.4 to S.8; 1 is the identity beside each half.
struct BlockFactors {
  double log_attention = 0;  ///< of log_attention_factor: H gamma' / sqrt(d)
  int64_t heads = 1;
  double alpha = 1;      ///< 1 + sum of lambda |Theta| over the shortcuts beside attention
  double beta = 1;       ///< the same beside the MLP
  double delta = 0;      ///< lambda |W1| |W2| of the MLP; 0 without one
  double scale = 1;      ///< of the sum after attention
  double mlp_scale = 1;  ///< of that after the MLP; 1 without one
};

/// In composite norms.
BlockFactors block_factors(const PlacedBlock& placed, const Weights& weights, bool has_mlp);

/// S.4 before its maximum, with r(Z_l) on both sides and no H before the identity:
/// H gamma' / sqrt(d) r^3 + alpha r.
double log_after_attention(const BlockFactors& factors, double log_r);

/// S.6: (delta + beta) r.
double log_after_mlp(const BlockFactors& factors, double log_r);

/// S.7 block by block: (delta + beta_l) max(H gamma / sqrt(d) r^3, 2 H alpha_l r), gamma = 2
/// gamma'.
double log_recursion(const BlockFactors& factors, double log_r);

/// S.8 (S.5 where there is no MLP) after all these blocks, with the largest factors of all of them:
/// with those of each block, as printed, it is no bound.
double log_closed_form(const std::vector<BlockFactors>& blocks, double log_r);

}  // namespace adjoin::analysis
