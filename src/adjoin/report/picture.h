#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace adjoin::report {

/// A picture as a page can hold it, "data:image/png;base64,..": bytes of rows, 1 (grey) or 3
/// channels side by side.
std::string png_data_uri(int64_t width, int64_t height, int64_t channels,
                         std::span<const uint8_t> pixels);

/// Whether a text is what png_data_uri makes, and so harmless in a page.
bool is_png_data_uri(std::string_view text);

}  // namespace adjoin::report
