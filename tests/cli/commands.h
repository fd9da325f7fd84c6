#pragma once

// The program from end to end: what its commands print.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "adjoin/core/json.h"
#include "support/expect_error.h"
#include "support/run_program.h"

namespace adjoin {

using Words = std::vector<std::string>;

constexpr int kUsage = 2;  // exit codes
constexpr int kBadData = 3;
constexpr int kNumeric = 4;

inline ProgramResult adjoin(Words args, const Words& more = {}) {
  args.insert(args.end(), more.begin(), more.end());
  return run_program(ADJOIN_BINARY, args);
}

/// The JSON a command prints; a failure shows what it said.
inline Json result_of(Words args, const Words& more = {}) {
  args.emplace_back("--json");
  const ProgramResult result = adjoin(std::move(args), more);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.exit_code == 0 ? parse_json(result.out, "stdout") : Json();
}

/// Runs a command that must fail in one line with this code and these words.
inline void expect_refused(int code, std::initializer_list<std::string_view> parts,
                           const Words& args) {
  const ProgramResult result = adjoin(args);
  EXPECT_EQ(result.exit_code, code) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  for (const auto part : parts) EXPECT_TRUE(contains(result.err, part)) << part << result.err;
  EXPECT_TRUE(result.out.empty()) << result.out;
}

/// The same of one that may have said other things before it failed.
inline void expect_refusal(const Words& args, int code, const Words& parts) {
  const ProgramResult result = adjoin(args);
  EXPECT_EQ(result.exit_code, code) << result.err;
  for (const std::string& part : parts)
    EXPECT_TRUE(contains(result.err, part)) << part << result.err;
}

/// The logits of every image of `input`, a row each.
inline Json logits_of(const std::string& model, const std::string& input, const Words& more = {}) {
  Json rows = Json::array();
  const Json result = result_of({"predict", model, input}, more);
  if (!result.contains("predictions")) return rows;
  for (const Json& entry : result["predictions"]) rows.push_back(entry["logits"]);
  return rows;
}

inline double largest_difference(const Json& a, const Json& b) {
  if (a.is_array() != b.is_array() || (a.is_array() && a.size() != b.size())) return INFINITY;
  if (!a.is_array()) return std::abs(a.get<double>() - b.get<double>());
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, largest_difference(a[i], b[i]));
  return most;
}

}  // namespace adjoin
