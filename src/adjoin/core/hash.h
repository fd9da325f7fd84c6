#pragma once

// Two small, fixed hash functions: values that depend on names alone, the same on every machine.

#include <cstdint>
#include <string_view>

namespace adjoin {

/// FNV-1a, 64 bits. To hash several texts as one, hand over the hash of those before.
constexpr uint64_t fnv1a(std::string_view text, uint64_t hash = 0xcbf29ce484222325U) {
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return hash;
}

/// One step of splitmix64 from state `x`: spreads neighbouring integers over all 64 bits.
constexpr uint64_t splitmix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace adjoin
