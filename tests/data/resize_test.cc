#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "adjoin/core/rng.h"
#include "adjoin/data/image.h"
#include "adjoin/data/resize_kernels.h"
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

Taps random_taps(int64_t from, size_t outputs, Rng& rng) {
  Taps taps;
  taps.stride = 12;
  taps.weights.resize(outputs * 12);
  for (size_t i = 0; i < outputs; ++i) {
    const int64_t count = 1 + rng.below(std::min<int64_t>(11, from));
    taps.windows.push_back({rng.below(from - count + 1), count});
    for (int64_t t = 0; t < count; ++t) {
      taps.weights[i * 12 + static_cast<size_t>(t)] =
          static_cast<int32_t>(rng.below(1 << 21) - (1 << 19));
    }
  }
  split_weights(taps);
  return taps;
}

Bytes noise(size_t size, Rng& rng) {
  Bytes bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng.below(256));
  return bytes;
}

TEST(ResizeKernelsTest, AllGiveTheSameBits) {
  const auto fast = avx2_kernels();
  if (!fast) GTEST_SKIP() << "this processor has no AVX2";
  const ResizeKernels plain_loops = portable_kernels();
  for (uint64_t trial = 0; trial < 200; ++trial) {
    Rng rng(trial);
    const int64_t from = 1 + rng.below(40);
    const auto outputs = static_cast<size_t>(1 + rng.below(40));
    const Taps taps = random_taps(from, outputs, rng);
    const Bytes a = noise(static_cast<size_t>(from) * 3 + kRowSlack, rng);
    const Bytes b = noise(a.size(), rng);
    Bytes got(outputs * 6), want(outputs * 6);
    fast->convolve_rgb({a.data(), b.data()}, taps, {got.data(), got.data() + outputs * 3});
    plain_loops.convolve_rgb({a.data(), b.data()}, taps, {want.data(), want.data() + outputs * 3});
    ASSERT_EQ(difference(got, want), "") << trial;

    const auto width = static_cast<size_t>(1 + rng.below(150));
    std::vector<Bytes> rows;
    std::vector<const uint8_t*> pointers;
    for (int64_t t = 0; t < taps.windows[0].count; ++t) rows.push_back(noise(width, rng));
    for (const Bytes& row : rows) pointers.push_back(row.data());
    Bytes blended(width), wanted(width);
    fast->blend(pointers, taps, 0, blended);
    plain_loops.blend(pointers, taps, 0, wanted);
    ASSERT_EQ(difference(blended, wanted), "") << trial;
  }
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
