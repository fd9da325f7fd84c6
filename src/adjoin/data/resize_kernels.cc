#include "adjoin/data/resize_kernels.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace adjoin::data {
namespace {

constexpr int32_t kHalf = 1 << (kFractionBits - 1);
constexpr int kLowBits = 15;

uint8_t to_pixel(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kFractionBits, 0, 255));
}

template <int kChannels>
void convolve_row(const uint8_t* row, const Taps& taps, uint8_t* out) {
  for (size_t x = 0; x < taps.windows.size(); ++x) {
    const Window window = taps.windows[x];
    const int32_t* weights = taps.weights.data() + static_cast<int64_t>(x) * taps.stride;
    const uint8_t* in = row + window.first * kChannels;
    std::array<int32_t, kChannels> sums;
    sums.fill(kHalf);
    for (int64_t t = 0; t < window.count; ++t) {
      for (int c = 0; c < kChannels; ++c) sums[c] += in[t * kChannels + c] * weights[t];
    }
    for (int c = 0; c < kChannels; ++c) *out++ = to_pixel(sums[c]);
  }
}

void convolve_rgb(std::array<const uint8_t*, 2> rows, const Taps& taps,
                  std::array<uint8_t*, 2> out) {
  convolve_row<3>(rows[0], taps, out[0]);
  convolve_row<3>(rows[1], taps, out[1]);
}

/// The bytes of the row from `begin` on. A block of sums at a time, so that they stay in the
/// nearest cache however many rows there are.
void blend_from(size_t begin, std::span<const uint8_t* const> rows, const int32_t* weights,
                std::span<uint8_t> out) {
  constexpr size_t kBlock = 256;
  std::array<int32_t, kBlock> sums;
  for (; begin < out.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, out.size() - begin);
    sums.fill(kHalf);
    for (size_t t = 0; t < rows.size(); ++t) {
      const uint8_t* in = rows[t] + begin;
      const int32_t weight = weights[t];
      for (size_t i = 0; i < count; ++i) sums[i] += in[i] * weight;
    }
    for (size_t i = 0; i < count; ++i) out[begin + i] = to_pixel(sums[i]);
  }
}

void blend(std::span<const uint8_t* const> rows, const Taps& taps, int64_t output,
           std::span<uint8_t> out) {
  blend_from(0, rows, taps.weights.data() + output * taps.stride, out);
}

#if defined(__x86_64__)

/// Two neighbouring weights in every 32 bits.
[[gnu::target("avx2")]] inline __m256i weight_pair(const int16_t* weights) {
  int32_t pair;
  std::memcpy(&pair, weights, sizeof pair);
  return _mm256_set1_epi32(pair);
}

/// Pixels from the sums of products with the low and the high parts of the weights.
[[gnu::target("avx2")]] inline __m256i rounded_sums(__m256i low, __m256i high) {
  const __m256i sums = _mm256_add_epi32(low, _mm256_slli_epi32(high, kLowBits));
  return _mm256_srai_epi32(_mm256_add_epi32(sums, _mm256_set1_epi32(kHalf)), kFractionBits);
}

/// A row in each half of a register; of four pixels the first two and the last two are brought
/// together channel by channel, as 16-bit numbers: r0 r1 g0 g1 b0 b1 0 0.
[[gnu::target("avx2")]] void convolve_rgb_avx2(std::array<const uint8_t*, 2> rows, const Taps& taps,
                                               std::array<uint8_t*, 2> out) {
  const __m256i first_pair = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
  const __m256i second_pair = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1));
  const size_t count = taps.windows.size();
  for (size_t x = 0; x < count; ++x) {
    const Window window = taps.windows[x];
    const int16_t* low_bits = taps.low_bits.data() + static_cast<int64_t>(x) * taps.stride;
    const int16_t* high_bits = taps.high_bits.data() + static_cast<int64_t>(x) * taps.stride;
    const uint8_t* a = rows[0] + window.first * 3;
    const uint8_t* b = rows[1] + window.first * 3;
    __m256i low = _mm256_setzero_si256();
    __m256i high = _mm256_setzero_si256();
    for (int64_t t = 0; t < window.count; t += 4) {
      const __m256i pixels = _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(b + t * 3),
                                                 reinterpret_cast<const __m128i*>(a + t * 3));
      const __m256i p = _mm256_shuffle_epi8(pixels, first_pair);
      const __m256i q = _mm256_shuffle_epi8(pixels, second_pair);
      low = _mm256_add_epi32(low, _mm256_madd_epi16(p, weight_pair(low_bits + t)));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(p, weight_pair(high_bits + t)));
      low = _mm256_add_epi32(low, _mm256_madd_epi16(q, weight_pair(low_bits + t + 2)));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(q, weight_pair(high_bits + t + 2)));
    }
    const __m256i sums = rounded_sums(low, high);
    const __m256i words = _mm256_packs_epi32(sums, sums);
    const __m256i bytes = _mm256_packus_epi16(words, words);
    const std::array<int32_t, 2> results = {_mm256_extract_epi32(bytes, 0),
                                            _mm256_extract_epi32(bytes, 4)};
    const size_t size = x + 1 < count ? 4 : 3;  // the fourth byte is overwritten by the next pixel
    for (size_t row = 0; row < 2; ++row) std::memcpy(out[row] + x * 3, &results[row], size);
  }
}

/// 32 bytes of the output, from two rows at a time.
[[gnu::target("avx2")]] inline void blend_block(std::span<const uint8_t* const> rows,
                                                const int16_t* low_bits, const int16_t* high_bits,
                                                size_t at, uint8_t* out) {
  const __m256i zero = _mm256_setzero_si256();
  __m256i low[4] = {zero, zero, zero, zero};
  __m256i high[4] = {zero, zero, zero, zero};
  for (size_t t = 0; t < rows.size(); t += 2) {
    const uint8_t* second = t + 1 < rows.size() ? rows[t + 1] : rows[t];  // then its weight is 0
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[t] + at));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(second + at));
    const __m256i ab_low = _mm256_unpacklo_epi8(a, b);
    const __m256i ab_high = _mm256_unpackhi_epi8(a, b);
    const __m256i pairs[4] = {
        _mm256_unpacklo_epi8(ab_low, zero), _mm256_unpackhi_epi8(ab_low, zero),
        _mm256_unpacklo_epi8(ab_high, zero), _mm256_unpackhi_epi8(ab_high, zero)};
    const __m256i low_weights = weight_pair(low_bits + t);
    const __m256i high_weights = weight_pair(high_bits + t);
    for (int i = 0; i < 4; ++i) {
      low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(pairs[i], low_weights));
      high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(pairs[i], high_weights));
    }
  }
  const __m256i words[2] = {
      _mm256_packs_epi32(rounded_sums(low[0], high[0]), rounded_sums(low[1], high[1])),
      _mm256_packs_epi32(rounded_sums(low[2], high[2]), rounded_sums(low[3], high[3]))};
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + at),
                      _mm256_packus_epi16(words[0], words[1]));
}

[[gnu::target("avx2")]] void blend_avx2(std::span<const uint8_t* const> rows, const Taps& taps,
                                        int64_t output, std::span<uint8_t> out) {
  const int64_t at = output * taps.stride;
  size_t begin = 0;
  for (; begin + 32 <= out.size(); begin += 32) {
    blend_block(rows, taps.low_bits.data() + at, taps.high_bits.data() + at, begin, out.data());
  }
  blend_from(begin, rows, taps.weights.data() + at, out);
}

#endif

}  // namespace

void split_weights(Taps& taps) {
  taps.low_bits.resize(taps.weights.size());
  taps.high_bits.resize(taps.weights.size());
  for (size_t i = 0; i < taps.weights.size(); ++i) {
    taps.low_bits[i] = static_cast<int16_t>(taps.weights[i] & ((1 << kLowBits) - 1));
    taps.high_bits[i] = static_cast<int16_t>(taps.weights[i] >> kLowBits);
  }
}

void convolve_grey(const uint8_t* row, const Taps& taps, uint8_t* out) {
  convolve_row<1>(row, taps, out);
}

ResizeKernels portable_kernels() { return {convolve_rgb, blend}; }

std::optional<ResizeKernels> avx2_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) return ResizeKernels{convolve_rgb_avx2, blend_avx2};
#endif
  return std::nullopt;
}

}  // namespace adjoin::data
