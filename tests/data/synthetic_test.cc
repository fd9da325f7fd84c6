#include <cmath>
#include <limits>

#include "data/read_split.h"
#include "support/expect_error.h"

namespace adjoin::data {
namespace {

TEST(SyntheticTest, HasTheShapesItsStringSays) {
  const DataSets sets = open_all("synthetic:3x5x7x4");
  EXPECT_EQ(sets.train->size(), 2048);
  EXPECT_EQ(sets.val.size(), 512);
  EXPECT_EQ(sets.train->classes, (std::vector<std::string>{"0", "1", "2", "3"}));
  EXPECT_EQ(sets.train->labels[6], 2);
  const Image image = std::get<Image>(sets.train->read(6));
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.height, 5);
  EXPECT_EQ(image.width, 7);
  EXPECT_EQ(image.pixels.size(), 105U);
  EXPECT_EQ(open_all("synthetic:1x28x28x10x100").train->size(), 100);
  EXPECT_EQ(open_all("synthetic:1x28x28x10x100").val.size(), 25);
}

TEST(SyntheticTest, ImagesDependOnSplitAndNumberAlone) {
  const DataSets few = open_all("synthetic:1x8x8x3x10");
  const DataSets many = open_all("synthetic:1x8x8x3x1000");
  EXPECT_EQ(pixels_of(*few.train, 7), pixels_of(*many.train, 7));
  EXPECT_EQ(pixels_of(few.val, 1), pixels_of(many.val, 1));
  EXPECT_NE(pixels_of(*many.train, 7), pixels_of(*many.train, 10));  // of the same class
  EXPECT_NE(pixels_of(*many.train, 1), pixels_of(many.val, 1));
}

/// The pixels that every machine must make: a change here changes what runs are compared by.
TEST(SyntheticTest, PixelsArePinned) {
  const DataSets sets = open_all("synthetic:3x2x2x5");
  EXPECT_EQ(pixels_of(*sets.train, 3),
            (std::vector<uint8_t>{116, 158, 140, 75, 166, 136, 92, 179, 116, 215, 149, 100}));
}

TEST(SyntheticTest, ClassesCanBeToldApart) {
  constexpr size_t kClasses = 10;
  const DataSets sets = open_all("synthetic:1x28x28x10x400");
  std::vector<std::vector<double>> means(kClasses, std::vector<double>(784, 0.0));
  for (int64_t i = 0; i < sets.train->size(); ++i) {
    const auto pixels = pixels_of(*sets.train, i);
    auto& mean = means[static_cast<size_t>(sets.train->labels[static_cast<size_t>(i)])];
    for (size_t p = 0; p < pixels.size(); ++p) mean[p] += pixels[p] / 40.0;
  }
  int64_t right = 0;
  for (int64_t i = 0; i < sets.val.size(); ++i) {
    const auto pixels = pixels_of(sets.val, i);
    size_t nearest = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t k = 0; k < kClasses; ++k) {
      double distance = 0;
      for (size_t p = 0; p < pixels.size(); ++p) distance += std::pow(pixels[p] - means[k][p], 2);
      if (distance < least) nearest = k;
      least = std::min(least, distance);
    }
    right += static_cast<int64_t>(nearest) == sets.val.labels[static_cast<size_t>(i)] ? 1 : 0;
  }
  EXPECT_GE(right, 95);  // of 100, by the nearest mean of a class
}

TEST(SyntheticTest, StringsThatAreWrongSayWhere) {
  const auto expect = [](const std::string& form, std::string_view part) {
    expect_error(ErrorKind::kUsage, {"synthetic:" + form, part, "synthetic:3x224x224x1000"},
                 [&] { open_all("synthetic:" + form); });
  };
  expect("3x224x224", "has 3 numbers");
  expect("3x224x224x10x5x1", "more than five numbers");
  expect("2x8x8x10", "channels is 2 and must be 1 or 3");
  expect("4x8x8x10", "channels is \"4\" and must be 1 to 3");
  expect("3x0x8x10", "height is \"0\"");
  expect("3x8x-8x10", "width is \"-8\"");
  expect("3x8x8xten", "classes is \"ten\"");
  expect("3x8x8x10x", "count is \"\"");
  expect("3x8x8x10x99999999999999999999", "count is \"99999999999999999999\"");
  expect("3x8x8x10 ", "classes is \"10 \"");
}

}  // namespace
}  // namespace adjoin::data
