#pragma once

// What a file may ask for: how much memory its reading may take, and how large a tensor may say it
// is. A small file must not make a large process.

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "adjoin/core/error.h"

namespace adjoin::io {

inline constexpr size_t kMostDims = 16;

/// How much of `limit` bytes is spoken for. Charge before allocating.
class MemoryBudget {
 public:
  /// `what` opens the message when the budget is spent: "model.pth: its pickle".
  MemoryBudget(std::string what, size_t limit) : what_(std::move(what)), limit_(limit) {}

  void charge(size_t bytes) {
    if (bytes > limit_ - used_) {
      throw Error(
          ErrorKind::kData,
          fmt::format("{} needs more memory than {} bytes, which is more than a file of its "
                      "size has reason to",
                      what_, limit_));
    }
    used_ += bytes;
  }

  /// What an allocation of `bytes` costs, with the allocator's own share.
  void charge_block(size_t bytes) { charge(bytes + kBlockOverhead); }

  void refund(size_t bytes) { used_ -= bytes; }
  void refund_block(size_t bytes) { refund(bytes + kBlockOverhead); }

 private:
  static constexpr size_t kBlockOverhead = 16;

  std::string what_;
  size_t limit_;
  size_t used_ = 0;
};

/// The product with zeros counted as ones, so that strides cannot overflow either; nothing when it
/// or a size is beyond int64_t. Sizes are not negative.
inline std::optional<int64_t> checked_extent(std::span<const int64_t> shape) {
  int64_t product = 1;
  for (const int64_t size : shape) {
    if (size != 0 && __builtin_mul_overflow(product, size, &product)) return std::nullopt;
  }
  return product;
}

}  // namespace adjoin::io
