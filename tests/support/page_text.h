#pragma once

// What a test looks for in a page.

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "support/expect_error.h"

namespace adjoin {

inline void expect_all(std::string_view text, std::initializer_list<std::string_view> parts) {
  for (const auto part : parts) EXPECT_TRUE(contains(text, part)) << part;
}

inline size_t count_of(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// From the first `from` up to the next `to`; empty where there is no such piece.
inline std::string between(const std::string& text, const std::string& from,
                           const std::string& to) {
  const size_t start = text.find(from);
  const size_t end = start == text.npos ? text.npos : text.find(to, start);
  return end == text.npos ? "" : text.substr(start, end - start);
}

}  // namespace adjoin
