#include "adjoin/nn/attention/window.h"

#include <fmt/format.h>

#include <cmath>

#include "adjoin/nn/attention/softmax.h"
#include "adjoin/nn/linear.h"

namespace adjoin::nn {
namespace {

constexpr double kMasked = -100;

/// Rolls the grid; positive shifts move towards lower rows and columns.
torch::Tensor rolled(const torch::Tensor& x, int64_t grid, int64_t shift) {
  const auto image = x.view({x.size(0), grid, grid, x.size(2)});
  return torch::roll(image, {-shift, -shift}, {1, 2}).view(x.sizes());
}

/// The relative position bias of every head, with the shift mask where windows are shifted.
///
/// (windows or 1, H, M^2, M^2)
torch::Tensor attention_bias(const torch::Tensor& table, const Window& window,
                             const Context& context) {
  const int64_t count = window.tokens();
  const auto key = [&](std::string_view what, int64_t a, int64_t b, int64_t c) {
    return fmt::format("{} {} {} {} {} {}", what, a, b, c, table.device().str(),
                       static_cast<int>(table.scalar_type()));
  };
  const auto index = constant(context, key("relative_position_index", window.size, 0, 0), [&] {
    return relative_position_index(window.size).flatten().to(table.device());
  });
  const auto bias =
      table.index_select(0, index).view({count, count, -1}).permute({2, 0, 1});  // (H, M^2, M^2)
  if (window.shift == 0) return bias.unsqueeze(0);
  const auto mask = constant(
      context, key("shift_mask", window.grid, window.size, window.shift),
      [&] { return shift_mask(window).unsqueeze(1).to(table.device(), table.scalar_type()); });
  return bias.unsqueeze(0) + mask;
}

}  // namespace

torch::Tensor relative_position_index(int64_t window) {
  const auto position = torch::arange(window * window);
  const auto row = position.div(window, "floor");
  const auto col = position.remainder(window);
  const auto dh = row.unsqueeze(1) - row.unsqueeze(0) + window - 1;
  const auto dw = col.unsqueeze(1) - col.unsqueeze(0) + window - 1;
  return dh * (2 * window - 1) + dw;
}

torch::Tensor shift_mask(const Window& window) {
  const auto [grid, size, shift] = window;
  const auto position = torch::arange(grid);
  const auto band = (position >= grid - size).to(torch::kInt64) +
                    (position >= grid - shift).to(torch::kInt64);  // 0, 1, 2 along one side
  const auto label = band.unsqueeze(1) * 3 + band.unsqueeze(0);    // (G, G), 0..8
  const int64_t side = grid / size;
  const auto windows = label.view({side, size, side, size})
                           .permute({0, 2, 1, 3})
                           .reshape({side * side, size * size});  // (windows, M^2)
  const auto differs = windows.unsqueeze(1) != windows.unsqueeze(2);
  return torch::zeros(differs.sizes()).masked_fill(differs, kMasked);
}

torch::Tensor window_attention(const Weights& weights, const std::string& prefix,
                               const torch::Tensor& x, const BlockSpec& block, const Window& window,
                               const Context& context) {
  const int64_t batch = x.size(0);
  const int64_t size = window.size;
  const int64_t side = window.grid / size;
  const double scale = 1 / std::sqrt(static_cast<double>(block.head_dim));
  const auto input = window.shift > 0 ? rolled(x, window.grid, window.shift) : x;
  // A linear layer does not care in which order tokens stand, so one copy makes heads and windows.
  const auto split = linear(weights, prefix + "qkv.", input)
                         .view({batch, side, size, side, size, 3, block.heads, block.head_dim})
                         .permute({5, 0, 1, 3, 6, 2, 4, 7})
                         .reshape({3, batch, side * side, block.heads, size * size, block.head_dim})
                         .unbind(0);
  const auto bias =
      attention_bias(weights.at(prefix + "relative_position_bias_table"), window, context);
  const auto mixed = scaled_dot_product(split[0], split[1], split[2], scale, bias);
  const auto merged = mixed.view({batch, side, side, block.heads, size, size, block.head_dim})
                          .permute({0, 1, 4, 2, 5, 3, 6})
                          .reshape({batch, window.grid * window.grid, block.attention_dim()});
  const auto out = window.shift > 0 ? rolled(merged, window.grid, -window.shift) : merged;
  return dropout(linear(weights, prefix + "proj.", out), context.dropout, context);
}

}  // namespace adjoin::nn
