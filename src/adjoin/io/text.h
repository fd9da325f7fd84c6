#pragma once

// Names from hostile files: whether they are text, and how they stand in a message.

#include <string>
#include <string_view>

namespace adjoin::io {

/// Well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

/// The text for a message: in quotes, on one line, cut when it is long.
std::string in_quotes(std::string_view text);

}  // namespace adjoin::io
