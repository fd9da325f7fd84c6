#pragma once

// Errors are part of the interface: what a test expects of one is its kind and the words a user
// needs.

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "adjoin/core/error.h"

namespace adjoin {

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Runs `act`, which must throw an Error of this kind whose message has every one of `parts`.
template <class Act>
void expect_error(ErrorKind kind, std::initializer_list<std::string_view> parts, Act act) {
  try {
    act();
  } catch (const Error& e) {
    EXPECT_EQ(static_cast<int>(e.kind()), static_cast<int>(kind)) << e.what();
    for (const std::string_view part : parts) {
      EXPECT_TRUE(contains(e.what(), part)) << "\"" << part << "\" is not in: " << e.what();
    }
    return;
  }
  ADD_FAILURE() << "no error where one was due"
                << (parts.size() > 0 ? " about " + std::string(*parts.begin()) : "");
}

}  // namespace adjoin
