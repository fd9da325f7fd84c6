#pragma once

// What a user can afford, as they say it: "--target-macs 0.45x", "--target-params 1.2M".

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "adjoin/core/json.h"

namespace adjoin::search {

/// What a network, or a part of one, costs.
struct Price {
  int64_t macs = 0;
  int64_t params = 0;

  Price& operator+=(const Price& other) {
    macs += other.macs;
    params += other.params;
    return *this;
  }
  Price operator+(const Price& other) const { return Price(*this) += other; }
  Price operator*(int64_t count) const { return {macs * count, params * count}; }
  bool operator==(const Price&) const = default;
};

/// Limits; absent: none.
struct Target {
  std::optional<int64_t> macs = {};
  std::optional<int64_t> params = {};

  bool is_stated() const { return macs || params; }

  /// A price as a share of the limit that it is nearest to, or most above; 0 without limits.
  double share(const Price& price) const;

  /// {"macs", "params"}, those that are stated.
  Json json() const;
};

/// A number with k, M or G, or a share of the large network's amount with x. Error(kUsage) opening
/// with `flag`.
int64_t parse_amount(const std::string& text, int64_t large, const std::string& flag);

}  // namespace adjoin::search
