#include "adjoin/core/text.h"

#include <algorithm>
#include <cstdint>

#include "adjoin/core/error.h"

namespace adjoin {
namespace {

/// Length of the sequence that opens with `lead` and the smallest code point it may hold.
struct Sequence {
  size_t length;
  uint32_t bits;
  uint32_t least;
};

Sequence sequence_of(unsigned char lead) {
  if (lead < 0x80) return {1, lead, 0};
  if (lead >= 0xc0 && lead < 0xe0) return {2, lead & 0x1fU, 0x80};
  if (lead >= 0xe0 && lead < 0xf0) return {3, lead & 0x0fU, 0x800};
  if (lead >= 0xf0 && lead < 0xf8) return {4, lead & 0x07U, 0x10000};
  return {0, 0, 0};
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto [length, bits, least] = sequence_of(static_cast<unsigned char>(text.front()));
    if (length == 0 || length > text.size()) return false;
    uint32_t point = bits;
    for (size_t i = 1; i < length; ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      if ((byte & 0xc0U) != 0x80) return false;
      point = point << 6 | (byte & 0x3fU);
    }
    const bool is_surrogate = point >= 0xd800 && point <= 0xdfff;
    if (point < least || is_surrogate || point > 0x10ffff) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool is_plain_text(std::string_view text) {
  return is_utf8(text) && std::none_of(text.begin(), text.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte < 0x20 || byte == 0x7f;
         });
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kMostShown = 120;
  if (text.size() <= kMostShown) return '"' + one_line(std::string(text)) + '"';
  return '"' + one_line(std::string(text.substr(0, kMostShown))) + "..\"";
}

}  // namespace adjoin
