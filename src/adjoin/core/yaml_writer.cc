// The writing half of core/yaml.h.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "adjoin/core/error.h"
#include "adjoin/core/fields.h"
#include "adjoin/core/text.h"
#include "adjoin/core/yaml.h"

namespace adjoin {
namespace {

constexpr size_t kLineWidth = 100;
constexpr size_t kMostKeyBytes = 500;  // escaped; longer ones are no keys to a YAML reader

/// Words that some version of YAML reads as a boolean or as nothing.
bool is_reserved(std::string_view text) {
  constexpr std::array<std::string_view, 9> kWords = {"true", "false", "null", "yes", "no",
                                                      "on",   "off",   "y",    "n"};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; });
  return std::find(kWords.begin(), kWords.end(), lower) != kWords.end();
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Whether any reader takes the text, without quotes, for itself. Numbers never begin so.
bool is_plain(std::string_view text) {
  if (text.empty() || is_reserved(text) || text.back() == ' ') return false;
  if (!is_letter(text.front()) && text.front() != '/' && text.front() != '_') return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') ||
           std::string_view("_-./+= ").find(c) != std::string_view::npos;
  });
}

/// The code point at `at` of well-formed UTF-8, and its length.
std::pair<uint32_t, size_t> code_point(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  uint32_t point = length == 1 ? lead : lead & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    point = point << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3fU);
  }
  return {point, length};
}

/// Controls, line breaks of Unicode, marks of byte order and points that are no characters.
bool must_escape(uint32_t point) {
  return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x2028 || point == 0x2029 ||
         point == 0xfeff || (point & 0xfffeU) == 0xfffe;
}

std::string quoted_text(std::string_view text) {
  std::string result = "\"";
  for (size_t at = 0; at < text.size();) {
    const auto [point, length] = code_point(text, at);
    if (point == '"' || point == '\\') {
      result += {'\\', static_cast<char>(point)};
    } else if (point == '\n') {
      result += "\\n";
    } else if (point == '\t') {
      result += "\\t";
    } else if (must_escape(point)) {
      result += point > 0xffff ? fmt::format("\\U{:08x}", point) : fmt::format("\\u{:04x}", point);
    } else {
      result += text.substr(at, length);
    }
    at += length;
  }
  return result + '"';
}

std::string string_text(const std::string& text) {
  if (!is_utf8(text)) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{} is not UTF-8, so no YAML can hold it", in_quotes(text)));
  }
  return is_plain(text) ? text : quoted_text(text);
}

std::string key_text(const std::string& key) {
  std::string text = string_text(key);
  if (text.size() > kMostKeyBytes) {
    throw Error(ErrorKind::kConfig,
                fmt::format("the key {} is longer than {} bytes", in_quotes(key), kMostKeyBytes));
  }
  return text;
}

/// With a point and a signed exponent: a number to readers of YAML 1.1 too.
std::string double_text(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  std::string text = fmt::format("{}", value);
  const size_t exponent = std::min(text.find('e'), text.size());
  if (text.find('.') == std::string::npos) text.insert(exponent, ".0");
  return text;
}

std::string scalar_text(const Json& value) {
  if (value.is_string()) return string_text(value.get_ref<const std::string&>());
  if (value.is_number_float()) return double_text(value.get<double>());
  if (value.is_binary() || value.is_discarded()) {
    throw Error(ErrorKind::kInternal, "this value has no form in YAML");
  }
  return value.dump();
}

/// An empty collection or a list of scalars that fits on the line; nothing otherwise.
std::string flow_text(const Json& value, size_t room) {
  if (!value.is_structured()) return scalar_text(value);
  if (value.empty()) return value.is_array() ? "[]" : "{}";
  if (!value.is_array()) return "";
  std::string text = "[";
  for (const Json& item : value) {
    if (item.is_structured()) return "";
    text += (text.size() > 1 ? ", " : "") + scalar_text(item);
    if (text.size() >= room) return "";
  }
  return text + "]";
}

void write_block(const Json& value, size_t indent, std::string& out);

/// What follows "key:" or "-" on the line, or on lines of its own.
void write_after(const Json& value, size_t indent, size_t used, std::string& out) {
  const std::string flow = flow_text(value, kLineWidth > used ? kLineWidth - used : 0);
  if (!flow.empty()) {
    out += " " + flow + "\n";
  } else {
    out += "\n";
    write_block(value, indent + 2, out);
  }
}

void write_block(const Json& value, size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  for (const auto& [key, item] : value.items()) {
    const std::string head = margin + (value.is_array() ? "-" : key_text(key) + ":");
    out += head;
    write_after(item, indent, head.size(), out);
  }
}

}  // namespace

std::string to_yaml(const Json& value) {
  const std::string flow = flow_text(value, kLineWidth);
  if (!flow.empty()) return flow + "\n";
  std::string out;
  write_block(value, 0, out);
  return out;
}

}  // namespace adjoin
