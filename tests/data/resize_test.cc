#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "adjoin/data/image.h"
#include "data/pil_images.h"
#include "support/expect_error.h"

namespace adjoin::data {
namespace {

class ResizeTest : public PilTest {};

TEST_F(ResizeTest, GivesThePixelsOfPilBitForBit) {
  int count = 0;
  for (const std::string& line : files().lines("resizes.txt")) {
    SCOPED_TRACE(line);
    std::istringstream words(line);
    std::string result;
    std::string source;
    std::string filter;
    Image image;
    int64_t width = 0;
    int64_t height = 0;
    words >> result >> source >> image.channels >> image.width >> image.height >> filter >> width >>
        height;
    image.pixels = files().read(source);
    const Image resized =
        resize(image, width, height,
               filter == "bicubic" ? Interpolation::kBicubic : Interpolation::kBilinear);
    EXPECT_EQ(resized.width, width);
    EXPECT_EQ(resized.height, height);
    EXPECT_EQ(resized.channels, image.channels);
    EXPECT_EQ(difference(resized.pixels, files().read(result)), "");
    ++count;
  }
  EXPECT_EQ(count, 96);
}

Image plain(int64_t width, int64_t height, int64_t channels) {
  return {width, height, channels,
          std::vector<uint8_t>(static_cast<size_t>(width * height * channels), 77)};
}

TEST(ResizeSizesTest, TheSameSizeGivesTheSameImage) {
  const Image image = plain(5, 4, 3);
  EXPECT_EQ(resize(image, 5, 4, Interpolation::kBicubic).pixels, image.pixels);
}

TEST(ResizeSizesTest, OneColorStaysItAtEverySize) {
  for (const int64_t side : {1, 2, 3, 31, 97, 300}) {
    for (const Interpolation filter : {Interpolation::kBilinear, Interpolation::kBicubic}) {
      const Image image = resize(plain(31, 97, 3), side, 301 - side, filter);
      EXPECT_EQ(image.pixels, plain(side, 301 - side, 3).pixels) << side;
    }
  }
}

TEST(ResizeSizesTest, SizesThatNoImageHasAreRefused) {
  const Image image = plain(4, 4, 3);
  for (const int64_t side : {int64_t{-1}, int64_t{0}, int64_t{65'501}, int64_t{1} << 62}) {
    expect_error(ErrorKind::kConfig, {"resize: ", "65,500"},
                 [&] { resize(image, side, 4, Interpolation::kBicubic); });
    expect_error(ErrorKind::kConfig, {"resize: ", "65,500"},
                 [&] { resize(image, 4, side, Interpolation::kBicubic); });
  }
  expect_error(ErrorKind::kConfig, {"20,000 x 20,000", "178,956,970"},
               [&] { resize(image, 20'000, 20'000, Interpolation::kBicubic); });
}

TEST(ResizeSizesTest, ResizesWhoseIntermediateRowsFillTheMemoryAreRefused) {
  const Image column = plain(1, 65'500, 1);
  EXPECT_EQ(resize(column, 50, 1, Interpolation::kBicubic).pixels, plain(50, 1, 1).pixels);
  expect_error(ErrorKind::kConfig, {"65,500 pixels made of 65,500 rows"},
               [&] { resize(column, 65'500, 1, Interpolation::kBicubic); });
}

TEST(ResizeSizesTest, ImagesThatContradictThemselvesAreRefused) {
  Image image = plain(4, 4, 3);
  image.pixels.pop_back();
  expect_error(ErrorKind::kData, {"resize: ", "47 bytes"},
               [&] { resize(image, 2, 2, Interpolation::kBilinear); });
  expect_error(ErrorKind::kData, {"resize: ", "2 channels"},
               [&] { resize(plain(4, 4, 2), 2, 2, Interpolation::kBilinear); });
  expect_error(ErrorKind::kData, {"resize: ", "0 x 4"},
               [&] { resize(plain(0, 4, 1), 2, 2, Interpolation::kBilinear); });
}

}  // namespace
}  // namespace adjoin::data
