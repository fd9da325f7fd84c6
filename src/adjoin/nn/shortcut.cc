#include "adjoin/nn/shortcut.h"

#include "adjoin/nn/linear.h"
#include "adjoin/tensor/device.h"
#include "adjoin/tensor/widened.h"

namespace adjoin::nn {

torch::Tensor circulant_product(const torch::Tensor& x, const torch::Tensor& weight) {
  const int64_t branches = weight.size(0);
  const int64_t blocks = weight.size(1);
  const int64_t size = weight.size(3);
  const int64_t rows = x.numel() / x.size(-1);
  // One product of small matrices per frequency: (F, rows, b) times (F, b, T b).
  const auto of_x =
      torch::fft::rfft(x.reshape({rows, blocks, size})).permute({2, 0, 1}).contiguous();
  const auto of_weight = torch::fft::rfft(weight)  // (T, b, b, F)
                             .permute({3, 2, 0, 1})
                             .reshape({-1, blocks, branches * blocks});
  const auto product = torch::bmm(of_x, of_weight).permute({1, 2, 0}).contiguous();
  auto shape = x.sizes().vec();
  shape.back() = branches * blocks * size;
  return torch::fft::irfft(product, size).reshape(shape);
}

torch::Tensor circulant_matrix(const torch::Tensor& weight) {
  const int64_t side = weight.size(1) * weight.size(3);
  const auto place = torch::arange(weight.size(3), weight.options().dtype(torch::kInt64));
  const auto from = (place.unsqueeze(1) - place.unsqueeze(0)).remainder(weight.size(3));
  return weight.index_select(3, from.flatten())
      .unflatten(3, from.sizes())  // (T, b, b, m, m): branch, block row and column, r, s
      .permute({0, 1, 3, 2, 4})
      .reshape({weight.size(0) * side, side});
}

torch::Tensor shortcut_branches(const Weights& weights, const std::string& prefix,
                                const Shortcut& shortcut, const torch::Tensor& x) {
  torch::Tensor made;
  if (shortcut.kind == ShortcutKind::kDense) {
    made = linear(weights, prefix, x);
  } else {
    const Autocast exact(x.device(), false);  // there is no transform of bfloat16
    const auto bias = vector_of(weights, prefix + "bias");
    made = circulant_product(widened(x), widened(weights.at(prefix + "weight"))) + widened(bias);
  }
  if (shortcut.has_gelu) made = torch::gelu(made);
  const auto sum = made.unflatten(-1, {shortcut.branches, x.size(-1)}).sum(-2);
  return sum.to(x.scalar_type());
}

}  // namespace adjoin::nn
