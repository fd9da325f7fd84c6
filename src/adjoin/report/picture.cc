#include "adjoin/report/picture.h"

#include <png.h>

#include <algorithm>
#include <vector>

#include "adjoin/core/error.h"

namespace adjoin::report {
namespace {

constexpr std::string_view kOpening = "data:image/png;base64,";
constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string base64(std::span<const uint8_t> bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) bits = bits << 8U | (k < count ? bytes[i + k] : 0U);
    for (size_t k = 0; k < 4; ++k) {
      text += k <= count ? kDigits[bits >> (18 - 6 * k) & 63U] : '=';
    }
  }
  return text;
}

}  // namespace

std::string png_data_uri(int64_t width, int64_t height, int64_t channels,
                         std::span<const uint8_t> pixels) {
  if ((channels != 1 && channels != 3) ||
      static_cast<int64_t>(pixels.size()) != width * height * channels) {
    throw Error(ErrorKind::kInternal, "a picture must have 1 or 3 channels and all of its pixels");
  }
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  std::vector<uint8_t> file;
  for (const bool is_counted : {false, true}) {
    file.resize(size);
    if (png_image_write_to_memory(&image, is_counted ? file.data() : nullptr, &size, 0,
                                  pixels.data(), 0, nullptr) == 0) {
      throw Error(ErrorKind::kInternal,
                  std::string("a picture cannot be written: ") + image.message);
    }
  }
  file.resize(size);
  return std::string(kOpening) + base64(file);
}

bool is_png_data_uri(std::string_view text) {
  if (!text.starts_with(kOpening)) return false;
  text.remove_prefix(kOpening.size());
  return text.find_first_not_of(std::string(kDigits) + "=") == std::string_view::npos;
}

}  // namespace adjoin::report
