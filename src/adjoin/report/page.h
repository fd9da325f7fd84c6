#pragma once

#include <string>

namespace adjoin::report {

/// A whole page that needs nothing else. `title` and `footer` are plain text, `body` is HTML.
std::string page(const std::string& title, const std::string& body, const std::string& footer);

}  // namespace adjoin::report
