#include "adjoin/data/augment.h"

#include <gtest/gtest.h>

#include <set>

#include "adjoin/data/codec.h"
#include "adjoin/data/color.h"
#include "adjoin/data/crop.h"
#include "data/pil_images.h"
#include "support/expect_error.h"

namespace adjoin::data {
namespace {

Image ramp(int64_t width, int64_t height, int64_t channels) {
  Image image{width, height, channels, {}};
  for (int64_t i = 0; i < width * height * channels; ++i) {
    image.pixels.push_back(static_cast<uint8_t>(i * 37 % 256));
  }
  return image;
}

/// Nothing is random but the crop.
AugmentOptions only_crop(CropMode mode) {
  AugmentOptions options;
  options.train_crop_mode = mode;
  options.train_interpolation = TrainInterpolation::kBilinear;
  options.hflip = 0;
  options.color_jitter = 0;
  return options;
}

class TrainTransformTest : public PilTest {
 protected:
  static Stored stored(const std::string& name) {
    const Bytes bytes = files().read(name);
    const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
    return io::own_bytes(name, {data, data + bytes.size()});
  }
};

TEST_F(TrainTransformTest, IsAFunctionOfImageAndRng) {
  AugmentOptions options;
  options.aa = "rand-m9-mstd0.5-inc1";
  for (const std::string name : {"rgb420_500x333.jpg", "rgb8_filtered_500x333.png"}) {
    for (const int64_t channels : {1, 3}) {
      const TrainTransform transform(options, 96, channels);
      std::set<std::string> seen;
      for (uint64_t key = 0; key < 10; ++key) {
        const Image image = transform(stored(name), name, Rng(key));
        EXPECT_EQ(image.width, 96);
        EXPECT_EQ(image.height, 96);
        EXPECT_EQ(image.channels, channels);
        EXPECT_EQ(image.pixels.size(), static_cast<size_t>(96 * 96 * channels));
        EXPECT_EQ(image.pixels, transform(stored(name), name, Rng(key)).pixels);
        seen.insert({image.pixels.begin(), image.pixels.end()});
      }
      EXPECT_EQ(seen.size(), 10U) << name;
    }
  }
}

TEST_F(TrainTransformTest, ARandomResizedCropOfAJpegIsThatOfTheWholeImage) {
  const AugmentOptions options = only_crop(CropMode::kRandomResized);
  constexpr int64_t kSize = 180;  // more than half the height: no shrinking
  for (const std::string name : {"rgb420_500x333.jpg", "grey_500x333.jpg", "cmyk_500x333.jpg"}) {
    for (const int64_t channels : {1, 3}) {
      const Image whole = decode_image(as_span(files().read(name)), name, channels);
      for (uint64_t key = 0; key < 10; ++key) {
        Rng rng(key);
        const Box box = random_resized_box(500, 333, options.scale, options.ratio, rng);
        EXPECT_EQ(TrainTransform(options, kSize, channels)(stored(name), name, Rng(key)).pixels,
                  resize(whole, box, kSize, kSize, Interpolation::kBilinear).pixels);
      }
    }
  }
}

TEST_F(TrainTransformTest, BrokenFilesAreErrorsWithTheirOrigin) {
  const TrainTransform transform({}, 96, 3);
  const Bytes bytes = files().read("rgb420_500x333.jpg");
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  const Stored cut = io::own_bytes("file", {data, data + 700});
  expect_error(ErrorKind::kData, {"cat.jpg: ", "broken or truncated"},
               [&] { transform(cut, "cat.jpg", Rng(0)); });
  const Stored text = io::own_bytes("file", std::vector<std::byte>(10));
  expect_error(ErrorKind::kData, {"cat.jpg: ", "JPEG or PNG"},
               [&] { transform(text, "cat.jpg", Rng(0)); });
}

TEST(TrainTransformModeTest, SmallImagesArePaddedAndCroppedLargeOnesResized) {
  EXPECT_EQ(crop_mode({}, 64), CropMode::kPad);
  EXPECT_EQ(crop_mode({}, 65), CropMode::kRandomResized);
  EXPECT_EQ(crop_mode(only_crop(CropMode::kNone), 224), CropMode::kNone);
  EXPECT_TRUE(TrainTransform({}, 32, 3).is_batchable());
  EXPECT_FALSE(TrainTransform({}, 224, 3).is_batchable());
  AugmentOptions options;
  options.aa = "rand-m9";
  EXPECT_FALSE(TrainTransform(options, 32, 3).is_batchable());
}

TEST(TrainTransformModeTest, PaddingBringsOtherSizesToItsOwnFirst) {
  AugmentOptions options = only_crop(CropMode::kPad);
  options.crop_padding = 0;
  const Image image = ramp(50, 40, 3);
  EXPECT_EQ(TrainTransform(options, 32, 3)(image, "x", Rng(1)).pixels,
            middle_square(image, 32, 32, Interpolation::kBilinear, "x").pixels);
  options.crop_padding = 4;
  Rng rng(7);
  const Image fitting = ramp(32, 32, 1);
  EXPECT_EQ(TrainTransform(options, 32, 1)(fitting, "x", Rng(7)).pixels,
            random_padded_crop(fitting, 32, 4, rng).pixels);
}

TEST(TrainTransformModeTest, NoneChangesNothingButTheSize) {
  AugmentOptions options = only_crop(CropMode::kNone);
  options.color_jitter = 0.4;  // only with random-resized-crop
  EXPECT_EQ(TrainTransform(options, 32, 3)(ramp(32, 32, 3), "x", Rng(1)).pixels,
            ramp(32, 32, 3).pixels);
  options.hflip = 1;
  Image flipped = ramp(32, 32, 3);
  flip(flipped);
  EXPECT_EQ(TrainTransform(options, 32, 3)(ramp(32, 32, 3), "x", Rng(1)).pixels, flipped.pixels);
}

TEST(TrainTransformModeTest, GreyPixelsBecomeColorWhereTheNetworkWantsIt) {
  const Image image =
      TrainTransform(only_crop(CropMode::kNone), 2, 3)(Image{2, 2, 1, {1, 2, 3, 4}}, "x", Rng(0));
  EXPECT_EQ(image.pixels, (Bytes{1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4}));
}

TEST(TrainTransformModeTest, PixelsOfOtherNumbersOfChannelsAreRefused) {
  expect_error(ErrorKind::kData, {"x: has 2 channels where 3"}, [] {
    TrainTransform(only_crop(CropMode::kNone), 2, 3)(Image{1, 1, 2, {1, 2}}, "x", Rng(0));
  });
}

TEST(TrainTransformModeTest, ColorsAreJitteredAfterARandomResizedCropWithoutRandAugment) {
  AugmentOptions options = only_crop(CropMode::kRandomResized);
  const Image source = ramp(40, 40, 3);
  const Image plain = TrainTransform(options, 16, 3)(source, "x", Rng(3));
  options.color_jitter = 0.4;
  EXPECT_NE(TrainTransform(options, 16, 3)(source, "x", Rng(3)).pixels, plain.pixels);
  options.aa = "rand-p0";
  EXPECT_EQ(TrainTransform(options, 16, 3)(source, "x", Rng(3)).pixels, plain.pixels);
}

TEST(TrainTransformModeTest, FlipsComeWithTheirChance) {
  AugmentOptions options = only_crop(CropMode::kNone);
  options.hflip = 0.25;
  const TrainTransform transform(options, 2, 1);
  int flips = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const Image image = transform(Image{2, 2, 1, {1, 2, 1, 2}}, "x", Rng(stream_key(4, {i})));
    flips += image.pixels[0] == 2 ? 1 : 0;
  }
  EXPECT_NEAR(flips, 250, 50);
}

TEST(TrainTransformModeTest, JitterStaysWithinItsStrength) {
  // Of a single grey pixel only the brightness can change.
  int lowest = 255;
  int highest = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    Image image{1, 1, 3, {100, 100, 100}};
    Rng rng(stream_key(9, {i}));
    jitter_colors(image, 0.4, rng);
    lowest = std::min<int>(lowest, image.pixels[0]);
    highest = std::max<int>(highest, image.pixels[0]);
  }
  EXPECT_GE(lowest, 59);  // factors are rounded down to single precision, then pixels
  EXPECT_LE(lowest, 62);
  EXPECT_LE(highest, 140);
  EXPECT_GE(highest, 138);
}

TEST(TrainTransformModeTest, OptionsOutOfPlaceAreRefused) {
  const auto refused = [](std::string_view part, auto change) {
    AugmentOptions options;
    change(options);
    expect_error(ErrorKind::kConfig, {part}, [&] { TrainTransform(options, 224, 3); });
  };
  refused("scale: [0.08]", [](AugmentOptions& o) { o.scale = {0.08}; });
  refused("scale: [0.5,0.1]", [](AugmentOptions& o) { o.scale = {0.5, 0.1}; });
  refused("up to 1", [](AugmentOptions& o) { o.scale = {0.5, 2}; });
  refused("scale: [0.0,1.0]", [](AugmentOptions& o) { o.scale = {0, 1}; });
  refused("ratio: []", [](AugmentOptions& o) { o.ratio = {}; });
  refused("hflip: 2", [](AugmentOptions& o) { o.hflip = 2; });
  refused("color_jitter: -1", [](AugmentOptions& o) { o.color_jitter = -1; });
  refused("crop_padding: -1", [](AugmentOptions& o) { o.crop_padding = -1; });
  refused("aa: \"v0\"", [](AugmentOptions& o) { o.aa = "v0"; });
  expect_error(ErrorKind::kConfig, {"1 or 3 channels"}, [] { TrainTransform({}, 224, 4); });
  expect_error(ErrorKind::kConfig, {"img_size: 0"}, [] { TrainTransform({}, 0, 3); });
}

}  // namespace
}  // namespace adjoin::data
