#pragma once

// What decode_image is made of: each file format to the pixels it holds. Of use inside data only.
//
// The C libraries report errors by longjmp, which runs no destructor: whoever owns something stands
// outside the functions that call setjmp, and those hold nothing but plain values.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "adjoin/data/image.h"

namespace adjoin::data {

inline constexpr int64_t kMaxImageSide = 65'500;         // libjpeg's
inline constexpr int64_t kMaxImagePixels = 178'956'970;  // PIL's, where it sees a bomb

bool looks_like_jpeg(std::span<const std::byte> bytes);
bool looks_like_png(std::span<const std::byte> bytes);

/// Error(kData) if an image this large is refused. Ask before allocating it.
void check_image_size(std::string_view origin, int64_t width, int64_t height);

/// Grey (channels 1), RGB (3), or CMYK with 255 for no ink (4), as Adobe writes it and PIL reads
/// it.
Image decode_jpeg(std::span<const std::byte> bytes, std::string_view origin);

/// Grey (channels 1) or RGB (3); alpha is dropped, of 16 bits the upper 8 are kept.
Image decode_png(std::span<const std::byte> bytes, std::string_view origin);

}  // namespace adjoin::data
