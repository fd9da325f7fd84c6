#pragma once

// The inner loops of resize: weighted sums of pixels in integers of 22 fractional bits. Once in
// plain C++ and once with AVX2, to the same bits. Of use inside data only.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace adjoin::data {

/// 32 bits hold 8 of a pixel, these, and 2 for sums beyond 255 and for the sign.
inline constexpr int kFractionBits = 22;

/// The kernels take 16 bytes at a time: where a row is read, so many must follow its last pixel.
inline constexpr size_t kRowSlack = 16;

/// The inputs first .. first + count - 1 make one output.
struct Window {
  int64_t first;
  int64_t count;
};

/// For each output along one side, its inputs and their weights.
struct Taps {
  std::vector<Window> windows;
  std::vector<int32_t> weights;
  std::vector<int16_t> low_bits;   ///< weights = high_bits * 2^15 + low_bits: 16-bit products
  std::vector<int16_t> high_bits;  ///< are made two at a time
  int64_t stride = 0;  ///< from the weights of one output to those of the next, a multiple of 4;
                       ///< behind a window they are 0
};

/// Splits the weights, once they are all there.
void split_weights(Taps& taps);

struct ResizeKernels {
  /// Two rows of RGB at another width.
  void (*convolve_rgb)(std::array<const uint8_t*, 2> rows, const Taps& taps,
                       std::array<uint8_t*, 2> out);
  /// One row from the weighted rows of its window.
  void (*blend)(std::span<const uint8_t* const> rows, const Taps& taps, int64_t output,
                std::span<uint8_t> out);
};

/// One row of grey at another width.
void convolve_grey(const uint8_t* row, const Taps& taps, uint8_t* out);

ResizeKernels portable_kernels();

/// None where the processor has no AVX2.
std::optional<ResizeKernels> avx2_kernels();

}  // namespace adjoin::data
