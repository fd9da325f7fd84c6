#pragma once

// How far the tokens of an image are from being all alike. Attention pulls them towards a matrix of
// rank one, 1 x^T (Dong, Cordonnier and Loukas 2021); what is left is the residual.
//
// Everything is per image: (B, N, C) -> (B). Numbers come out in float64.

#include "adjoin/tensor/torch.h"

namespace adjoin::analysis {

/// X - 1 x^T with x the mean token, which is nearest in the Frobenius and the spectral norm.
///
/// (.., N, C)
torch::Tensor residual(const torch::Tensor& x);

/// Norms of matrices (.., N, C) -> (..): largest sum of absolute values of a column, of a row, and
/// the root of their product. The last is called a norm in the papers and is none: the triangle
/// inequality fails. It is homogeneous and submultiplicative.
torch::Tensor column_norm(const torch::Tensor& x);
torch::Tensor row_norm(const torch::Tensor& x);
torch::Tensor composite_norm(const torch::Tensor& x);
torch::Tensor frobenius(const torch::Tensor& x);

/// The mean cosine of two different tokens; 1: they all point the same way.
torch::Tensor token_cosine(const torch::Tensor& x);

/// exp of the entropy of the singular values as shares of their sum (Roy and Vetterli 2007): 1 for
/// a matrix of rank one, min(N, C) where all are alike.
torch::Tensor effective_rank(const torch::Tensor& x);

/// The same from singular values (.., K), largest first or not.
torch::Tensor effective_rank_of(const torch::Tensor& singular_values);

/// Singular values, largest first, by the eigenvalues of the smaller product of the matrix with
/// itself, in float64: those below 1e-8 of the largest are noise.
///
/// (.., N, C) -> (.., min(N, C))
torch::Tensor singular_values(const torch::Tensor& x);

}  // namespace adjoin::analysis
