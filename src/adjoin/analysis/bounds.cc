#include "adjoin/analysis/bounds.h"

#include <cmath>

#include "adjoin/analysis/token_rank.h"
#include "adjoin/nn/shortcut.h"
#include "adjoin/spec/tensors.h"

namespace adjoin::analysis {
namespace {

double log_sum(double a, double b) {
  const double most = std::max(a, b);
  return std::isinf(most) ? most : most + std::log1p(std::exp(std::min(a, b) - most));
}

double composite(const torch::Tensor& x) { return composite_norm(x).item<double>(); }

/// Sum of lambda |Theta| over the branches of a shortcut, which has GELU or not.
double shortcut_slope(const PlacedBlock& placed, const Weights& weights, const char* which) {
  const auto& shortcut = placed.block->shortcut;
  if (!shortcut || shortcut->branches == 0) return 0;
  double sum = 0;
  for (const auto& matrix : branch_matrices(placed, weights, which)) {
    sum += (shortcut->has_gelu ? kGeluSlope : 1) * composite(matrix);
  }
  return sum;
}

}  // namespace

std::vector<torch::Tensor> branch_matrices(const PlacedBlock& placed, const Weights& weights,
                                           const char* which) {
  const Shortcut& shortcut = placed.block->shortcut.value();
  const auto& stored = weights.at(placed.name + "." + which + ".weight");
  const auto matrix =
      shortcut.kind == ShortcutKind::kDense ? stored : nn::circulant_matrix(stored);  // (T C, C)
  return matrix.flatten(0, -2).chunk(shortcut.branches, 0);
}

std::vector<HeadMatrices> head_matrices(const PlacedBlock& placed, const Weights& weights) {
  const BlockSpec& block = *placed.block;
  const std::string prefix = placed.name + ".attn.";
  const auto rows = weights.at(prefix + "qkv.weight").flatten(0, -2);  // (3 H d, C)
  const auto& out = weights.at(prefix + "proj.weight");                // (C, H d)
  std::vector<HeadMatrices> found;
  for (int64_t h = 0; h < block.heads; ++h) {
    const auto part = [&](int64_t which) {  // (d, C)
      return rows.narrow(0, which * block.attention_dim() + h * block.head_dim, block.head_dim);
    };
    const auto back = out.narrow(1, h * block.head_dim, block.head_dim);  // (C, d)
    found.push_back({torch::matmul(part(0).t(), part(1)), torch::matmul(part(2).t(), back.t())});
  }
  return found;
}

double log_beta(const std::vector<HeadMatrices>& heads) {
  double most = -INFINITY;
  for (const HeadMatrices& head : heads) {
    most =
        std::max(most, std::log(column_norm(head.qk).item<double>()) + std::log(composite(head.v)));
  }
  return most;
}

double log_attention_factor(double log_beta, int64_t heads, int64_t head_dim) {
  return std::log(4.0 * static_cast<double>(heads)) + log_beta -
         0.5 * std::log(static_cast<double>(head_dim));
}

double log_stack_bound(double log_factor, double log_r, int64_t layers) {
  const double power = std::pow(3.0, static_cast<double>(layers));
  return power * (log_factor / 2 + log_r) - log_factor / 2;
}

BlockFactors block_factors(const PlacedBlock& placed, const Weights& weights, bool has_mlp) {
  const BlockSpec& block = *placed.block;
  BlockFactors factors;
  factors.heads = block.heads;
  factors.log_attention =
      log_attention_factor(log_beta(head_matrices(placed, weights)), block.heads, block.head_dim);
  factors.alpha = 1 + shortcut_slope(placed, weights, kShortcuts[0]);
  if (block.shortcut) factors.scale = block.shortcut->scale;
  if (!has_mlp) return factors;
  factors.mlp_scale = factors.scale;
  factors.beta = 1 + shortcut_slope(placed, weights, kShortcuts[1]);
  factors.delta = kGeluSlope * composite(weights.at(placed.name + ".mlp.fc1.weight")) *
                  composite(weights.at(placed.name + ".mlp.fc2.weight"));
  return factors;
}

double log_after_attention(const BlockFactors& factors, double log_r) {
  return std::log(factors.scale) +
         log_sum(factors.log_attention + 3 * log_r, std::log(factors.alpha) + log_r);
}

double log_after_mlp(const BlockFactors& factors, double log_r) {
  return std::log(factors.mlp_scale) + std::log(factors.delta + factors.beta) + log_r;
}

double log_recursion(const BlockFactors& factors, double log_r) {
  const double cubic = std::log(2.0) + factors.log_attention + 3 * log_r;
  const double linear = std::log(2.0 * static_cast<double>(factors.heads) * factors.alpha) + log_r;
  return std::log(factors.scale * factors.mlp_scale) + std::log(factors.delta + factors.beta) +
         std::max(cubic, linear);
}

double log_closed_form(const std::vector<BlockFactors>& blocks, double log_r) {
  double cubic = -INFINITY, linear = 0;  // 2 H alpha is 1 at least
  for (const BlockFactors& block : blocks) {
    const double last =
        std::log(block.delta + block.beta) + std::log(block.scale * block.mlp_scale);
    cubic = std::max(cubic, std::log(2.0) + block.log_attention + last);
    linear =
        std::max(linear, std::log(2.0 * static_cast<double>(block.heads) * block.alpha) + last);
  }
  double most = -INFINITY;
  for (size_t m = 0; m <= blocks.size(); ++m) {
    const double power = std::pow(3.0, static_cast<double>(m));
    const auto rest = static_cast<double>(blocks.size() - m);
    const double steps = m == 0 ? 0 : (power - 1) / 2 * cubic;  // attention may do nothing at all
    most = std::max(most, steps + power * (rest * linear + log_r));
  }
  return most;
}

}  // namespace adjoin::analysis
