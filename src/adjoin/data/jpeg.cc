// jpeglib.h uses FILE and size_t without declaring them.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <string>
#include <utility>

#include "adjoin/core/error.h"
#include "adjoin/data/codec.h"

namespace adjoin::data {

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

namespace {

/// Each scan of a progressive file passes over the whole image, and a scan can be a few bytes: a
/// small file could keep us busy for hours. Encoders write about ten.
constexpr int kMaxScans = 500;
constexpr int64_t kMaxScannedPixels = 4'000'000'000;  // over all scans: minutes, not hours

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

void open_jpeg(JpegReader& reader, std::span<const std::byte> bytes, std::string_view origin) {
  if (!read_header(reader, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size())) {
    throw broken(origin, reader);
  }
  check_image_size(origin, reader.info.image_width, reader.info.image_height);
  reader.info.out_color_space = color_space_of(reader.info.num_components, origin);
}

/// Smooth upsampling of colors mixes in the neighbours, so that the outermost pixels of what is
/// decoded differ from those of the whole image.
constexpr int64_t kMargin = 4;

/// From `first` to before `end`.
struct Stretch {
  int64_t first;
  int64_t end;
};

Stretch with_margin(int64_t first, int64_t length, int64_t limit) {
  return {std::max<int64_t>(first - kMargin, 0), std::min(first + length + kMargin, limit)};
}

/// Starts decoding and narrows the rows to `columns`, or a little more; `first` is where they then
/// begin.
bool start_part(JpegReader& reader, Stretch columns, JDIMENSION* first) {
  if (setjmp(reader.escape) != 0) return false;  // NOLINT: how libjpeg reports errors
  jpeg_start_decompress(&reader.info);
  auto width = static_cast<JDIMENSION>(columns.end - columns.first);
  *first = static_cast<JDIMENSION>(columns.first);
  if (width < reader.info.output_width) jpeg_crop_scanline(&reader.info, first, &width);
  return true;
}

bool read_rows(JpegReader& reader, Stretch rows, uint8_t* pixels, size_t row_bytes) {
  if (setjmp(reader.escape) != 0) return false;  // NOLINT: how libjpeg reports errors
  if (rows.first > 0) jpeg_skip_scanlines(&reader.info, static_cast<JDIMENSION>(rows.first));
  while (reader.info.output_scanline < rows.end) {
    JSAMPROW row =
        pixels + (reader.info.output_scanline - static_cast<size_t>(rows.first)) * row_bytes;
    jpeg_read_scanlines(&reader.info, &row, 1);
  }
  return true;
}

/// The box in an image that is `shrink` times smaller, rounded outwards.
Box shrunk(const Box& box, int64_t shrink) {
  const int64_t left = box.left / shrink;
  const int64_t top = box.top / shrink;
  const int64_t right = (box.left + box.width + shrink - 1) / shrink;
  const int64_t bottom = (box.top + box.height + shrink - 1) / shrink;
  return {left, top, right - left, bottom - top};
}

}  // namespace

bool looks_like_jpeg(std::span<const std::byte> bytes) {
  constexpr std::array kOpening = {std::byte{0xFF}, std::byte{0xD8}, std::byte{0xFF}};
  return bytes.size() >= kOpening.size() &&
         std::memcmp(bytes.data(), kOpening.data(), kOpening.size()) == 0;
}

Image decode_jpeg(std::span<const std::byte> bytes, std::string_view origin) {
  JpegReader reader;
  open_jpeg(reader, bytes, origin);
  Image image{reader.info.image_width, reader.info.image_height, reader.info.num_components, {}};
  const auto row_bytes = static_cast<size_t>(image.width * image.channels);
  image.pixels.resize(row_bytes * static_cast<size_t>(image.height));
  if (!read_pixels(reader, image.pixels.data(), row_bytes)) throw broken(origin, reader);
  return image;
}

JpegFile::JpegFile(std::span<const std::byte> bytes, std::string_view origin)
    : origin_(origin), reader_(std::make_unique<JpegReader>()) {
  open_jpeg(*reader_, bytes, origin);
}

JpegFile::~JpegFile() = default;

int64_t JpegFile::width() const { return reader_->info.image_width; }

int64_t JpegFile::height() const { return reader_->info.image_height; }

JpegPart JpegFile::read(const Box& box, int shrink) {
  check_box("JPEG", box, width(), height());
  auto& info = reader_->info;
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(shrink);
  const Box part = shrunk(box, shrink);
  const int64_t whole_width = (width() + shrink - 1) / shrink;
  const int64_t whole_height = (height() + shrink - 1) / shrink;
  const Stretch rows = with_margin(part.top, part.height, whole_height);
  JDIMENSION left = 0;
  if (!start_part(*reader_, with_margin(part.left, part.width, whole_width), &left)) {
    throw broken(origin_, *reader_);
  }
  Image image{info.output_width, rows.end - rows.first, info.num_components, {}};
  const auto row_bytes = static_cast<size_t>(image.width * image.channels);
  image.pixels.resize(row_bytes * static_cast<size_t>(image.height));
  if (!read_rows(*reader_, rows, image.pixels.data(), row_bytes)) throw broken(origin_, *reader_);
  return {std::move(image), {part.left - left, part.top - rows.first, part.width, part.height}};
}

}  // namespace adjoin::data
