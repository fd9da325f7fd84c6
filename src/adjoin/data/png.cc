#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>

#include "adjoin/core/error.h"
#include "adjoin/data/codec.h"

namespace adjoin::data {
namespace {

/// Pixels need none of the chunks these limit; only a hostile file comes near.
constexpr png_uint_32 kMaxChunks = 128;
constexpr png_alloc_size_t kMaxChunkBytes = 8'000'000;

struct PngReader {
  PngReader() = default;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  png_structp png = nullptr;
  png_infop info = nullptr;
  std::span<const std::byte> rest;  ///< what is not read yet
  std::array<char, 128> message{};
};

struct PngHeader {
  png_uint_32 width;
  png_uint_32 height;
  int bit_depth;
  int color_type;
};

[[noreturn]] void give_up(png_structp png, png_const_charp message) {
  auto* reader = static_cast<PngReader*>(png_get_error_ptr(png));
  std::snprintf(reader->message.data(), reader->message.size(), "%s", message);
  png_longjmp(png, 1);
}

void print_nothing(png_structp, png_const_charp) {}

void take_bytes(png_structp png, png_bytep out, size_t count) {
  auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
  if (count > reader->rest.size()) png_error(png, "the file ends too early");
  std::memcpy(out, reader->rest.data(), count);
  reader->rest = reader->rest.subspan(count);
}

bool read_header(PngReader& reader, PngHeader& header) {
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, give_up, print_nothing);
  if (reader.png == nullptr) return false;
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;  // NOLINT: how libpng reports errors
  reader.info = png_create_info_struct(reader.png);
  png_set_read_fn(reader.png, &reader, take_bytes);
  png_set_user_limits(reader.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // ours speak more clearly
  png_set_chunk_cache_max(reader.png, kMaxChunks);
  png_set_chunk_malloc_max(reader.png, kMaxChunkBytes);
  // -1: of the chunks libpng knows, only those that pixels depend on are looked into.
  png_set_keep_unknown_chunks(reader.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_benign_errors(reader.png, 1);
  png_read_info(reader.png, reader.info);
  png_get_IHDR(reader.png, reader.info, &header.width, &header.height, &header.bit_depth,
               &header.color_type, nullptr, nullptr, nullptr);
  return true;
}

/// Grey and palette indices as one byte, colors as three.
bool read_pixels(PngReader& reader, const PngHeader& header, uint8_t* pixels, size_t row_bytes) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;  // NOLINT: how libpng reports errors
  png_set_strip_16(reader.png);
  png_set_strip_alpha(reader.png);
  if (header.color_type == PNG_COLOR_TYPE_PALETTE) png_set_packing(reader.png);
  if (header.color_type == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(reader.png);
  const int passes = png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  if (png_get_rowbytes(reader.png, reader.info) != row_bytes) {
    png_error(reader.png, "rows of another length than its header says");
  }
  for (int pass = 0; pass < passes; ++pass) {
    for (png_uint_32 y = 0; y < header.height; ++y) {
      png_read_row(reader.png, pixels + y * row_bytes, nullptr);
    }
  }
  png_read_end(reader.png, nullptr);
  return true;
}

Error broken(std::string_view origin, const PngReader& reader) {
  return {ErrorKind::kData,
          std::string(origin) + ": the PNG is broken or truncated: " + reader.message.data()};
}

Image look_up_colors(const Image& indices, const PngReader& reader, std::string_view origin) {
  png_colorp palette = nullptr;
  int count = 0;
  png_get_PLTE(reader.png, reader.info, &palette, &count);
  const int highest = *std::max_element(indices.pixels.begin(), indices.pixels.end());
  if (highest >= count) {
    throw Error(ErrorKind::kData, std::string(origin) + ": the PNG is broken: a pixel has color " +
                                      std::to_string(highest) + " of a palette of " +
                                      std::to_string(count));
  }
  Image image{indices.width, indices.height, 3, {}};
  image.pixels.resize(indices.pixels.size() * 3);
  for (size_t i = 0; i < indices.pixels.size(); ++i) {
    const png_color& color = palette[indices.pixels[i]];
    image.pixels[i * 3] = color.red;
    image.pixels[i * 3 + 1] = color.green;
    image.pixels[i * 3 + 2] = color.blue;
  }
  return image;
}

}  // namespace

bool looks_like_png(std::span<const std::byte> bytes) {
  constexpr std::string_view kOpening = "\x89PNG\r\n\x1A\n";
  return bytes.size() >= kOpening.size() &&
         std::memcmp(bytes.data(), kOpening.data(), kOpening.size()) == 0;
}

Image decode_png(std::span<const std::byte> bytes, std::string_view origin) {
  PngReader reader;
  reader.rest = bytes;
  PngHeader header{};
  if (!read_header(reader, header)) throw broken(origin, reader);
  check_image_size(origin, header.width, header.height);
  const bool is_palette = header.color_type == PNG_COLOR_TYPE_PALETTE;
  const bool is_rgb = !is_palette && (header.color_type & PNG_COLOR_MASK_COLOR) != 0;
  Image image{header.width, header.height, is_rgb ? 3 : 1, {}};
  const auto row_bytes = static_cast<size_t>(image.width * image.channels);
  image.pixels.resize(row_bytes * static_cast<size_t>(image.height));
  if (!read_pixels(reader, header, image.pixels.data(), row_bytes)) throw broken(origin, reader);
  return is_palette ? look_up_colors(image, reader, origin) : image;
}

}  // namespace adjoin::data
