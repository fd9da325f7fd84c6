#include "adjoin/compress/importance.h"

#include "adjoin/core/error.h"
#include "adjoin/models/forward.h"
#include "adjoin/spec/tensors.h"

namespace adjoin::compress {
namespace {

bool is_sliced(const Axis& axis) {
  return axis.kind == AxisKind::kHeads || axis.kind == AxisKind::kHidden;
}

/// Sums over everything but the heads or units that axis `dim` counts.
torch::Tensor per_unit(const torch::Tensor& values, const std::vector<Axis>& axes, size_t dim) {
  int64_t before = 1;
  for (size_t i = 0; i < dim; ++i) before *= axes[i].size();
  const Axis& axis = axes[dim];
  return values.reshape({before, axis.groups, axis.count, -1}).sum({0, 1, 3});
}

torch::Tensor& score_of(Importance& importance, AxisKind kind) {
  return kind == AxisKind::kHeads ? importance.heads : importance.hidden;
}

std::vector<Importance> no_importance(const ModelSpec& spec) {
  std::vector<Importance> result;
  for_each_block(spec, [&](const BlockSpec& block) {
    result.push_back(
        {torch::zeros(block.heads, torch::kFloat64), torch::zeros(block.hidden, torch::kFloat64)});
  });
  return result;
}

/// The places along an axis in a new order of its heads or units: the same in every group.
torch::Tensor places(const Axis& axis, const torch::Tensor& order) {
  const auto group = torch::arange(axis.groups).view({-1, 1, 1}) * (axis.count * axis.unit);
  const auto within = torch::arange(axis.unit).view({1, 1, -1});
  return (group + order.view({1, -1, 1}) * axis.unit + within).flatten();
}

}  // namespace

std::vector<Importance> magnitude(const ModelSpec& spec, const Weights& weights) {
  const torch::NoGradGuard no_grad;
  auto result = no_importance(spec);
  for (const TensorInfo& info : tensors(spec)) {
    for (size_t dim = 0; dim < info.axes.size(); ++dim) {
      if (!is_sliced(info.axes[dim])) continue;
      const auto squares = weights.at(info.name).to(torch::kCPU, torch::kFloat64).square();
      score_of(result[static_cast<size_t>(info.block)], info.axes[dim].kind) +=
          per_unit(squares, info.axes, dim);
    }
  }
  return result;
}

std::vector<Importance> taylor(const ModelSpec& spec, const Weights& weights,
                               const torch::Tensor& images, const torch::Tensor& labels) {
  auto result = no_importance(spec);
  std::vector<TensorInfo> matrices;
  std::vector<torch::Tensor> leaves;
  Weights shared;
  for (const TensorInfo& info : tensors(spec)) {
    const auto leaf = weights.at(info.name).detach();
    if (is_output_matrix(info)) {
      matrices.push_back(info);
      leaves.push_back(leaf.requires_grad_(true));
    }
    shared.set(info.name, leaf);
  }
  for (int64_t i = 0; i < images.size(0); ++i) {
    const auto logits = models::forward(spec, shared, images.narrow(0, i, 1)).logits();
    const auto loss = torch::nn::functional::cross_entropy(logits, labels.narrow(0, i, 1));
    const auto gradients = torch::autograd::grad({loss}, leaves);
    for (size_t m = 0; m < matrices.size(); ++m) {
      const auto change =
          (leaves[m].detach() * gradients[m]).to(torch::kCPU, torch::kFloat64);  // of one gate
      score_of(result[static_cast<size_t>(matrices[m].block)], matrices[m].axes[1].kind) +=
          per_unit(change, matrices[m].axes, 1).square();
    }
  }
  return result;
}

Weights reordered(const ModelSpec& spec, const Weights& weights,
                  const std::vector<Importance>& importance) {
  const torch::NoGradGuard no_grad;
  Weights result;
  for (const TensorInfo& info : tensors(spec)) {
    auto tensor = weights.at(info.name).detach();
    for (size_t dim = 0; dim < info.axes.size(); ++dim) {
      if (!is_sliced(info.axes[dim])) continue;
      Importance scores = importance[static_cast<size_t>(info.block)];
      if (!score_of(scores, info.axes[dim].kind).isfinite().all().item<bool>()) {
        throw Error(ErrorKind::kNumeric,
                    info.name + ": the importance of its heads or units is NaN or infinite");
      }
      const auto order = std::get<1>(
          score_of(scores, info.axes[dim].kind).sort(/*stable=*/true, 0, /*descending=*/true));
      tensor = tensor.index_select(static_cast<int64_t>(dim),
                                   places(info.axes[dim], order).to(tensor.device()));
    }
    result.set(info.name, tensor.clone());
  }
  return result;
}

}  // namespace adjoin::compress
