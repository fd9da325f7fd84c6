#pragma once

// What decode_image is made of: each file format to the pixels it holds. Of use inside data only.
//
// The C libraries report errors by longjmp, which runs no destructor: whoever owns something stands
// outside the functions that call setjmp, and those hold nothing but plain values.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "adjoin/data/image.h"

namespace adjoin::data {

inline constexpr int64_t kMaxImageSide = 65'500;         // libjpeg's
inline constexpr int64_t kMaxImagePixels = 178'956'970;  // PIL's, where it sees a bomb

bool looks_like_jpeg(std::span<const std::byte> bytes);
bool looks_like_png(std::span<const std::byte> bytes);

/// Error(kData) if an image this large is refused. Ask before allocating it.
void check_image_size(std::string_view origin, int64_t width, int64_t height);

/// Error(kInternal) if the box is empty or not inside an image of this size.
void check_box(std::string_view what, const Box& box, int64_t width, int64_t height);

/// Grey (channels 1), RGB (3), or CMYK with 255 for no ink (4), as Adobe writes it and PIL reads
/// it.
Image decode_jpeg(std::span<const std::byte> bytes, std::string_view origin);

/// A part of a JPEG, possibly at a fraction of its size.
struct JpegPart {
  Image image;  ///< channels as of decode_jpeg
  Box box;      ///< where in the image the part lies
};

struct JpegReader;

/// A JPEG of which only a part is decoded: what lies below it is not read, what lies beside it is
/// not transformed.
class JpegFile {
 public:
  /// Reads the header. The bytes must outlive the object.
  JpegFile(std::span<const std::byte> bytes, std::string_view origin);
  ~JpegFile();
  JpegFile(const JpegFile&) = delete;
  JpegFile& operator=(const JpegFile&) = delete;

  int64_t width() const;
  int64_t height() const;

  /// The pixels in the box, those that the whole image has there. With a `shrink` of 2, 4 or 8 the
  /// image is that much smaller, by leaving out the finest waves of each block, and the box is
  /// rounded outwards. Once per object. Error(kData) when what is read on the way is broken.
  JpegPart read(const Box& box, int shrink = 1);

 private:
  std::string origin_;
  std::unique_ptr<JpegReader> reader_;
};

/// Grey (channels 1) or RGB (3); alpha is dropped, of 16 bits the upper 8 are kept.
Image decode_png(std::span<const std::byte> bytes, std::string_view origin);

}  // namespace adjoin::data
