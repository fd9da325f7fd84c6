#include "adjoin/data/crop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "data/pil_images.h"
#include "support/expect_error.h"

namespace adjoin::data {
namespace {

const std::vector<double> kScale = {0.08, 1};
const std::vector<double> kRatio = {3.0 / 4, 4.0 / 3};

/// Every pixel tells where it stands.
Image marked(int64_t width, int64_t height, int64_t channels) {
  Image image{width, height, channels, {}};
  for (int64_t i = 0; i < width * height * channels; ++i) {
    image.pixels.push_back(static_cast<uint8_t>(1 + i % 253));
  }
  return image;
}

TEST(CropTest, BoxesHaveTheAreaAndShapeThatWereAskedFor) {
  double area_sum = 0;
  double log_ratio_sum = 0;
  constexpr int kDraws = 20'000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    Rng rng(stream_key(0, {i}));
    const Box box = random_resized_box(500, 480, kScale, kRatio, rng);
    ASSERT_GE(box.left, 0);
    ASSERT_GE(box.top, 0);
    ASSERT_LE(box.left + box.width, 500);
    ASSERT_LE(box.top + box.height, 480);
    const double area = static_cast<double>(box.width * box.height) / (500.0 * 480);
    const double ratio = static_cast<double>(box.width) / static_cast<double>(box.height);
    ASSERT_GT(area, 0.08 * 0.98);  // sides are rounded to pixels
    ASSERT_GT(ratio, 3.0 / 4 * 0.98);
    ASSERT_LT(ratio, 4.0 / 3 * 1.02);
    area_sum += area;
    log_ratio_sum += std::log(ratio);
  }
  EXPECT_NEAR(area_sum / kDraws, 0.5, 0.04);  // below the middle: large boxes fit less often
  EXPECT_NEAR(log_ratio_sum / kDraws, 0, 0.02);
}

TEST(CropTest, BoxesReachEveryCorner) {
  std::set<std::pair<int64_t, int64_t>> corners;
  for (uint64_t i = 0; i < 500; ++i) {
    Rng rng(stream_key(0, {i}));
    const Box box = random_resized_box(3, 2, {0.1, 0.2}, {1, 1}, rng);
    ASSERT_EQ(box.width, 1);
    corners.insert({box.left, box.top});
  }
  EXPECT_EQ(corners.size(), 6U);
}

TEST(CropTest, WhereNoBoxFitsItIsTheLargestInTheMiddle) {
  Rng rng(1);
  EXPECT_EQ(random_resized_box(1000, 10, {1, 1}, kRatio, rng), (Box{493, 0, 13, 10}));
  EXPECT_EQ(random_resized_box(10, 1000, {1, 1}, kRatio, rng), (Box{0, 493, 10, 13}));
  EXPECT_EQ(random_resized_box(1, 1000, {1, 1}, {50, 60}, rng), (Box{0, 499, 1, 1}));
}

TEST(CropTest, ResizeOfABoxIsThatOfItsPixels) {
  for (const int64_t channels : {1, 3}) {
    const Image image = marked(40, 31, channels);
    for (const Box& box : {Box{0, 0, 40, 31}, Box{3, 2, 20, 29}, Box{39, 30, 1, 1},
                           Box{0, 30, 40, 1}, Box{17, 5, 23, 26}}) {
      for (const auto& [width, height] : {std::pair{7, 9}, {23, 26}, {64, 5}, {20, 60}}) {
        for (const auto filter : {Interpolation::kBilinear, Interpolation::kBicubic}) {
          EXPECT_EQ(resize(image, box, width, height, filter).pixels,
                    resize(crop(image, box), width, height, filter).pixels);
        }
      }
    }
  }
}

TEST(CropTest, BoxesOutsideTheImageAreRefused) {
  const Image image = marked(4, 3, 3);
  for (const Box& box : {Box{0, 0, 5, 3}, Box{-1, 0, 2, 2}, Box{3, 0, 2, 2}, Box{0, 2, 1, 2},
                         Box{0, 0, 0, 1}, Box{INT64_MAX, 0, 1, 1}}) {
    expect_error(ErrorKind::kInternal, {"not inside 4 x 3"}, [&] { crop(image, box); });
    expect_error(ErrorKind::kInternal, {"not inside 4 x 3"},
                 [&] { resize(image, box, 2, 2, Interpolation::kBilinear); });
  }
}

TEST(CropTest, PaddedCropsAreTheImageMovedOverBlack) {
  const Image image = marked(6, 6, 3);
  std::set<std::string> seen;
  for (uint64_t i = 0; i < 2000; ++i) {
    Rng rng(stream_key(0, {i}));
    const Bytes pixels = random_padded_crop(image, 6, 2, rng).pixels;
    seen.insert({pixels.begin(), pixels.end()});
  }
  std::set<std::string> wanted;
  for (int dy = -2; dy <= 2; ++dy) {
    for (int dx = -2; dx <= 2; ++dx) {
      std::string moved(image.pixels.size(), 0);
      for (int y = std::max(0, dy); y < std::min(6, 6 + dy); ++y) {
        for (int x = std::max(0, dx); x < std::min(6, 6 + dx); ++x) {
          for (int c = 0; c < 3; ++c) {
            moved[static_cast<size_t>((y * 6 + x) * 3 + c)] = static_cast<char>(
                image.pixels[static_cast<size_t>(((y - dy) * 6 + x - dx) * 3 + c)]);
          }
        }
      }
      wanted.insert(moved);
    }
  }
  EXPECT_EQ(seen, wanted);
}

TEST(CropTest, PaddingWiderThanTheImageLeavesBlackSquares) {
  Rng rng(0);
  const Image image = random_padded_crop(marked(1, 1, 1), 1, 50, rng);
  EXPECT_EQ(image.pixels, Bytes{0});
}

TEST(CropTest, FlippingMirrorsEveryRow) {
  Image image{3, 2, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19}};
  flip(image);
  EXPECT_EQ(image.pixels, (Bytes{7, 8, 9, 4, 5, 6, 1, 2, 3, 17, 18, 19, 14, 15, 16, 11, 12, 13}));
  Image grey{4, 1, 1, {1, 2, 3, 4}};
  flip(grey);
  EXPECT_EQ(grey.pixels, (Bytes{4, 3, 2, 1}));
}

TEST(CropTest, TheMiddleSquareIsTheImageItselfWhereThatIsOne) {
  const Image square = marked(8, 8, 3);
  EXPECT_EQ(middle_square(square, 8, 8, Interpolation::kBicubic, "x").pixels, square.pixels);
  const Image wide = marked(13, 8, 1);  // 2.5 pixels on either side, the half to the even side
  EXPECT_EQ(middle_square(wide, 8, 8, Interpolation::kBicubic, "x").pixels,
            crop(wide, {2, 0, 8, 8}).pixels);
  EXPECT_EQ(middle_square(marked(50, 20, 3), 10, 10, Interpolation::kBilinear, "x").pixels.size(),
            300U);
  expect_error(ErrorKind::kData, {"strip.png: 330 x 10", "32 times"}, [&] {
    middle_square(marked(330, 10, 1), 8, 8, Interpolation::kBilinear, "strip.png");
  });
}

}  // namespace
}  // namespace adjoin::data
