#include "adjoin/nn/attention/window.h"

#include <fmt/format.h>

#include <cmath>

#include "adjoin/nn/attention/heads.h"
#include "adjoin/nn/attention/softmax.h"

namespace adjoin::nn {
namespace {

constexpr double kMasked = -100;

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
      table.index_select(0, index).view({count, count, -1}).permute({2, 0, 1}).contiguous();
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

TokenOrder window_order(const Window& window, torch::Device device, const Context& context) {
  const auto [grid, size, shift] = window;
  const auto kept = [&](std::string_view what, const std::function<torch::Tensor()>& make) {
    const auto key = fmt::format("{} {} {} {} {}", what, grid, size, shift, device.str());
    return constant(context, key, [&] { return make().to(device, torch::kInt32); });
  };
  const auto tokens = [grid = grid, size = size, shift = shift] {
    const int64_t side = grid / size;
    const auto token = torch::arange(grid * grid).view({grid, grid});
    return torch::roll(token, {-shift, -shift}, {0, 1})
        .view({side, size, side, size})
        .permute({0, 2, 1, 3})
        .flatten();
  };
  return {kept("window_tokens", tokens),
          kept("window_places", [&] { return torch::argsort(tokens()); })};
}

Branch window_attention(const Weights& weights, const std::string& prefix, const torch::Tensor& x,
                        const BlockSpec& block, const Window& window, const Context& context) {
  const int64_t batch = x.size(0);
  const int64_t count = window.grid * window.grid / window.tokens();
  const double scale = 1 / std::sqrt(static_cast<double>(block.head_dim));
  const auto windows = x.view({batch * count, window.tokens(), x.size(2)});
  auto heads = project_heads(weights, prefix + "qkv.", windows, block.heads);
  for (torch::Tensor& part : heads) {
    part = part.view({batch, count, block.heads, window.tokens(), block.head_dim});
  }
  const auto bias =
      attention_bias(weights.at(prefix + "relative_position_bias_table"), window, context);
  const auto mixed = scaled_dot_product(heads[0], heads[1], heads[2], scale, bias);
  const auto merged = mixed.transpose(2, 3).reshape({batch, x.size(1), block.attention_dim()});
  return projected(weights, prefix + "proj.", merged, context);
}

}  // namespace adjoin::nn
