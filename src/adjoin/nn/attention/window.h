#pragma once

// Swin's attention inside shifted windows with relative position bias (Liu et al. 2021, 3.2).

#include <string>

#include "adjoin/nn/residual.h"
#include "adjoin/spec/swin.h"

namespace adjoin::nn {

/// Row of the bias table for every pair of positions in a window:
/// (dh + M - 1)(2M - 1) + (dw + M - 1) with (dh, dw) = position i - position j, row-major.
///
/// (M^2, M^2), int64
torch::Tensor relative_position_index(int64_t window);

/// -100 where two tokens share a window only because the image was rolled, else 0.
///
/// (windows, M^2, M^2), float32
torch::Tensor shift_mask(const Window& window);

/// The tokens of a grid window by window, row-major inside, after the grid was rolled by the shift.
TokenOrder window_order(const Window& window, torch::Device device, const Context& context);

/// softmax(q k^T scale + bias) v inside windows, with the bias table under `prefix` ("..attn.").
///
/// three times (B, W, H, N, d) -> (B, W, H, N, d)
torch::Tensor window_attention(const Weights& weights, const std::string& prefix,
                               const torch::Tensor& q, const torch::Tensor& k,
                               const torch::Tensor& v, double scale, const Window& window,
                               const Context& context);

}  // namespace adjoin::nn
