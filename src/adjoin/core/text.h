#pragma once

// Names from hostile files: whether they are text, and how they stand in a message.

#include <string>
#include <string_view>

namespace adjoin {

/// Well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

/// UTF-8 without control characters: what may stand in a table or a file as it is.
bool is_plain_text(std::string_view text);

/// The text for a message: in quotes, on one line, cut when it is long.
std::string in_quotes(std::string_view text);

}  // namespace adjoin
