#include "adjoin/nn/attention/window.h"

#include <fmt/format.h>

#include "adjoin/nn/attention/softmax.h"
#include "adjoin/spec/tensors.h"
#include "adjoin/spec/window.h"

namespace adjoin::nn {
namespace {

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
  const int64_t count = window * window;
  return torch::tensor(relative_position_rows(window), torch::kInt64).view({count, count});
}

torch::Tensor shift_mask(const Window& window) {
  const std::vector<bool> pairs = strangers(window);
  std::vector<float> scores(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) scores[i] = pairs[i] ? float(kStrangerScore) : 0;
  return torch::tensor(scores).view({-1, window.tokens(), window.tokens()});
}

TokenOrder window_order(const Window& window, torch::Device device, const Context& context) {
  const auto kept = [&](std::string_view what, auto rows) {
    const auto key =
        fmt::format("{} {} {} {} {}", what, window.grid, window.size, window.shift, device.str());
    return constant(context, key,
                    [&] { return torch::tensor(rows(window), torch::kInt32).to(device); });
  };
  return {kept("window_tokens", window_tokens), kept("window_places", window_places)};
}

torch::Tensor window_attention(const Weights& weights, const std::string& prefix,
                               const torch::Tensor& q, const torch::Tensor& k,
                               const torch::Tensor& v, double scale, const Window& window,
                               const Context& context) {
  return scaled_dot_product(
      q, k, v, scale, attention_bias(weights.at(prefix + kWindowBias), window, context), context);
}

}  // namespace adjoin::nn
