#pragma once

// Breaks files: flips, overwrites, cuts, repeats, swaps, splices.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace adjoin::fuzz {

/// Numbers that depend on the seed alone.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next();
  /// 0 .. count - 1; 0 when count is 0.
  size_t below(size_t count) { return count == 0 ? 0 : static_cast<size_t>(next() % count); }
  bool one_in(size_t count) { return below(count) == 0; }

 private:
  uint64_t state_;
};

/// A part of a file that mutations aim at.
struct Region {
  size_t begin = 0;
  size_t end = 0;
};

/// Breaks `file` once, inside the region as far as its size allows. `other` is a file to splice
/// with, `tokens` are pieces that the format is made of.
void mutate(std::string& file, Region region, const std::string& other,
            std::span<const std::string> tokens, Random& random);

}  // namespace adjoin::fuzz
