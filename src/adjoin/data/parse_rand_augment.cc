// The string RandAugment is written with: "rand", then parts of a key and a number.

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "adjoin/core/error.h"
#include "adjoin/core/text.h"
#include "adjoin/data/augment.h"

namespace adjoin::data {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUniformFrom = 100;  // timm: a spread above this means uniform strengths

struct Key {
  std::string_view name;
  double least;
  double most;
  bool is_whole;
  void (*set)(RandAugment& settings, double value);
};

/// Longer keys before those they open with.
constexpr auto kKeys = std::to_array<Key>({
    {"mstd", 0, kInfinity, false,
     [](RandAugment& s, double v) { s.magnitude_std = v > kUniformFrom ? kInfinity : v; }},
    {"mmax", 1, 30, false, [](RandAugment& s, double v) { s.magnitude_max = v; }},
    {"inc", 1, 1, true, [](RandAugment& s, double) { s.is_increasing = true; }},
    {"m", 0, 30, false, [](RandAugment& s, double v) { s.magnitude = v; }},
    {"n", 1, 15, true, [](RandAugment& s, double v) { s.layers = static_cast<int64_t>(v); }},
    {"p", 0, 1, false, [](RandAugment& s, double v) { s.probability = v; }},
});

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw Error(ErrorKind::kConfig, fmt::format("aa: {}: {}", in_quotes(text), why));
}

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

const Key* key_of(std::string_view part) {
  for (const Key& key : kKeys) {
    if (part.starts_with(key.name)) return &key;
  }
  return nullptr;
}

}  // namespace

RandAugment parse_rand_augment(const std::string& text) {
  std::string_view rest = text;
  const auto take_part = [&rest] {
    const size_t length = std::min(rest.find('-'), rest.size());
    const std::string_view part = rest.substr(0, length);
    rest.remove_prefix(std::min(length + 1, rest.size()));
    return part;
  };
  if (take_part() != "rand") {
    refuse(text, "only RandAugment is known, written like rand-m9-mstd0.5-inc1");
  }
  if (text.ends_with('-')) refuse(text, "nothing follows the last -");
  RandAugment settings;
  std::set<std::string_view> seen;
  while (!rest.empty()) {
    const std::string_view part = take_part();
    const Key* key = key_of(part);
    if (key == nullptr) {
      refuse(text, fmt::format("unknown part {}; legal: m, mstd, mmax, n, p and inc, each with a "
                               "number",
                               in_quotes(part)));
    }
    const auto value = number_in(part.substr(key->name.size()));
    const bool is_legal = value && *value >= key->least && *value <= key->most &&
                          (!key->is_whole || *value == std::trunc(*value));
    if (!is_legal) {
      refuse(text, fmt::format("{}: after {} stands a {} from {} to {}", in_quotes(part), key->name,
                               key->is_whole ? "whole number" : "number", key->least, key->most));
    }
    if (!seen.insert(key->name).second) refuse(text, fmt::format("{} is given twice", key->name));
    key->set(settings, *value);
  }
  if (settings.magnitude > settings.magnitude_max) {
    refuse(text, fmt::format("m{} is above the strongest, {}; raise it with mmax",
                             settings.magnitude, settings.magnitude_max));
  }
  return settings;
}

}  // namespace adjoin::data
