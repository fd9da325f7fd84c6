// jpeglib.h uses FILE and size_t without declaring them.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <array>
#include <csetjmp>
#include <cstring>
#include <string>

#include "adjoin/core/error.h"
#include "adjoin/data/codec.h"

namespace adjoin::data {
namespace {

/// Each scan of a progressive file passes over the whole image, and a scan can be a few bytes: a
/// small file could keep us busy for hours. Encoders write about ten.
constexpr int kMaxScans = 500;
constexpr int64_t kMaxScannedPixels = 4'000'000'000;  // over all scans: minutes, not hours

struct JpegReader {
  JpegReader() {
    info.err = jpeg_std_error(&errors);
    info.client_data = this;
  }
  ~JpegReader() { jpeg_destroy_decompress(&info); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf escape{};
  std::array<char, JMSG_LENGTH_MAX> message{};
};

/// Files with these load everywhere and lack no pixel.
bool is_harmless(int warning) {
  return warning == JWRN_ADOBE_XFORM || warning == JWRN_EXTRANEOUS_DATA ||
         warning == JWRN_JFIF_MAJOR || warning == JWRN_NOT_SEQUENTIAL;
}

[[noreturn]] void give_up(j_common_ptr info) {
  auto* reader = static_cast<JpegReader*>(info->client_data);
  info->err->format_message(info, reader->message.data());
  std::longjmp(reader->escape, 1);  // NOLINT: libjpeg's error_exit has no other way out
}

/// Warnings have negative levels. libjpeg would go on and make up the pixels that are missing.
void take_message(j_common_ptr info, int level) {
  if (level < 0 && !is_harmless(info->err->msg_code)) give_up(info);
}

void print_nothing(j_common_ptr) {}

void limit_scans(j_common_ptr info) {
  auto* reader = static_cast<JpegReader*>(info->client_data);
  const auto& image = reader->info;
  const int64_t scanned = int64_t{image.image_width} * image.image_height * image.input_scan_number;
  if (image.input_scan_number <= kMaxScans && scanned <= kMaxScannedPixels) return;
  std::snprintf(reader->message.data(), reader->message.size(),
                "%d scans are too many for its size", image.input_scan_number);
  std::longjmp(reader->escape, 1);  // NOLINT: as above
}

bool read_header(JpegReader& reader, const unsigned char* bytes, size_t size) {
  if (setjmp(reader.escape) != 0) return false;  // NOLINT: how libjpeg reports errors
  reader.errors.error_exit = give_up;
  reader.errors.emit_message = take_message;
  reader.errors.output_message = print_nothing;
  jpeg_create_decompress(&reader.info);
  reader.progress.progress_monitor = limit_scans;
  reader.info.progress = &reader.progress;
  jpeg_mem_src(&reader.info, bytes, size);
  jpeg_read_header(&reader.info, TRUE);
  return true;
}

bool read_pixels(JpegReader& reader, uint8_t* pixels, size_t row_bytes) {
  if (setjmp(reader.escape) != 0) return false;  // NOLINT: how libjpeg reports errors
  jpeg_start_decompress(&reader.info);
  while (reader.info.output_scanline < reader.info.output_height) {
    JSAMPROW row = pixels + reader.info.output_scanline * row_bytes;
    jpeg_read_scanlines(&reader.info, &row, 1);
  }
  jpeg_finish_decompress(&reader.info);  // up to the end marker, which a truncated file lacks
  return true;
}

Error broken(std::string_view origin, const JpegReader& reader) {
  return {ErrorKind::kData,
          std::string(origin) + ": the JPEG is broken or truncated: " + reader.message.data()};
}

J_COLOR_SPACE color_space_of(int components, std::string_view origin) {
  switch (components) {
    case 1: return JCS_GRAYSCALE;
    case 3: return JCS_RGB;
    case 4: return JCS_CMYK;
    default:
      throw Error(ErrorKind::kData, std::string(origin) + ": the JPEG has " +
                                        std::to_string(components) +
                                        " color components, must be 1, 3 or 4");
  }
}

}  // namespace

bool looks_like_jpeg(std::span<const std::byte> bytes) {
  constexpr std::array kOpening = {std::byte{0xFF}, std::byte{0xD8}, std::byte{0xFF}};
  return bytes.size() >= kOpening.size() &&
         std::memcmp(bytes.data(), kOpening.data(), kOpening.size()) == 0;
}

Image decode_jpeg(std::span<const std::byte> bytes, std::string_view origin) {
  JpegReader reader;
  if (!read_header(reader, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size())) {
    throw broken(origin, reader);
  }
  Image image{reader.info.image_width, reader.info.image_height, reader.info.num_components, {}};
  check_image_size(origin, image.width, image.height);
  reader.info.out_color_space = color_space_of(reader.info.num_components, origin);
  const auto row_bytes = static_cast<size_t>(image.width * image.channels);
  image.pixels.resize(row_bytes * static_cast<size_t>(image.height));
  if (!read_pixels(reader, image.pixels.data(), row_bytes)) throw broken(origin, reader);
  return image;
}

}  // namespace adjoin::data
