#include <gtest/gtest.h>

#include <string>

#include "adjoin/data/codec.h"
#include "adjoin/data/crop.h"
#include "data/pil_images.h"
#include "support/expect_error.h"

namespace adjoin::data {
namespace {

class JpegPartTest : public PilTest {
 protected:
  /// Every row range with some columns, and every column range with some rows.
  static std::vector<Box> boxes_of(int64_t width, int64_t height) {
    std::vector<Box> boxes;
    for (int64_t left = 0; left < width; ++left) {
      for (int64_t w = 1; left + w <= width; ++w) {
        for (const int64_t top : {int64_t{0}, height / 2}) {
          boxes.push_back({left, top, w, std::min<int64_t>(3, height - top)});
        }
      }
    }
    for (int64_t top = 0; top < height; ++top) {
      for (int64_t h = 1; top + h <= height; ++h) {
        for (const int64_t left : {int64_t{0}, width / 2}) {
          boxes.push_back({left, top, std::min<int64_t>(3, width - left), h});
        }
      }
    }
    return boxes;
  }

  static void expect_parts_of_the_whole(const std::string& name) {
    const Bytes bytes = files().read(name);
    const Image whole = decode_jpeg(as_span(bytes), name);
    for (const Box& box : boxes_of(whole.width, whole.height)) {
      const JpegPart part = JpegFile(as_span(bytes), name).read(box);
      ASSERT_EQ(part.box.width, box.width);
      ASSERT_EQ(part.box.height, box.height);
      ASSERT_EQ(difference(crop(part.image, part.box).pixels, crop(whole, box).pixels), "")
          << name << ": " << box.width << " x " << box.height << " at " << box.left << ", "
          << box.top;
    }
  }
};

TEST_F(JpegPartTest, HasThePixelsThatTheWholeImageHasThere) {
  for (const std::string kind : {"rgb420", "rgb422", "rgb444", "progressive", "grey",
                                 "greyprogressive", "cmyk", "ycck", "rgbjpeg"}) {
    expect_parts_of_the_whole(kind + "_37x53.jpg");
  }
}

TEST_F(JpegPartTest, HasThemInLargerImagesToo) {
  for (const std::string kind : {"rgb420", "rgb422", "rgb444", "progressive", "grey"}) {
    const std::string name = kind + "_500x333.jpg";
    const Bytes bytes = files().read(name);
    const Image whole = decode_jpeg(as_span(bytes), name);
    for (uint64_t i = 0; i < 25; ++i) {
      Rng rng(stream_key(2, {i}));
      const Box box = random_resized_box(500, 333, {0.001, 1}, {0.2, 5}, rng);
      const JpegPart part = JpegFile(as_span(bytes), name).read(box);
      ASSERT_EQ(difference(crop(part.image, part.box).pixels, crop(whole, box).pixels), "")
          << name << ": " << box.width << " x " << box.height << " at " << box.left << ", "
          << box.top;
    }
  }
}

TEST_F(JpegPartTest, ShrunkItLooksLikeTheWholeImageResized) {
  for (const std::string kind : {"rgb420", "rgb444", "progressive", "grey"}) {
    const std::string name = kind + "_500x333.jpg";
    const Bytes bytes = files().read(name);
    const Image whole = decode_jpeg(as_span(bytes), name);
    for (const int shrink : {2, 4, 8}) {
      SCOPED_TRACE(name + " / " + std::to_string(shrink));
      const Box box{101, 57, 299, 222};
      const JpegPart part = JpegFile(as_span(bytes), name).read(box, shrink);
      EXPECT_GE(part.box.width * shrink, box.width);
      EXPECT_GE(part.box.height * shrink, box.height);
      EXPECT_LE(part.box.width * shrink, box.width + 2 * shrink);
      const Image got = resize(part.image, part.box, 24, 24, Interpolation::kBicubic);
      const Image want = resize(whole, box, 24, 24, Interpolation::kBicubic);
      double sum = 0;
      for (size_t i = 0; i < got.pixels.size(); ++i) {
        sum += std::abs(got.pixels[i] - want.pixels[i]);
      }
      EXPECT_LT(sum / static_cast<double>(got.pixels.size()), shrink == 8 ? 20 : 10);
    }
  }
}

TEST_F(JpegPartTest, DamageAboveOrInsideThePartIsNoticedAndBelowItDoesNotMatter) {
  const std::string name = "rgb420_500x333.jpg";
  const Bytes bytes = files().read(name);
  const Bytes half(bytes.begin(), bytes.begin() + static_cast<int64_t>(bytes.size() / 2));
  const Image whole = decode_jpeg(as_span(bytes), name);
  const Box upper{10, 10, 100, 100};
  const JpegPart part = JpegFile(as_span(half), name).read(upper);
  EXPECT_EQ(difference(crop(part.image, part.box).pixels, crop(whole, upper).pixels), "");
  for (const Box& lower : {Box{0, 300, 20, 20}, Box{0, 100, 20, 200}}) {
    expect_error(ErrorKind::kData, {"cat.jpg: the JPEG is broken or truncated"},
                 [&] { JpegFile(as_span(half), "cat.jpg").read(lower); });
  }
  const Bytes progressive = files().read("progressive_500x333.jpg");
  const Bytes cut(progressive.begin(), progressive.end() - 200);
  expect_error(ErrorKind::kData, {"broken or truncated"},
               [&] { JpegFile(as_span(cut), "cat.jpg").read(upper); });
}

TEST_F(JpegPartTest, FlippedBitsGiveAPartOfSoundSizeOrARefusal) {
  int refused = 0;
  for (const std::string kind : {"rgb420", "rgb422", "progressive", "grey", "cmyk"}) {
    const Bytes whole = files().read(kind + "_37x53.jpg");
    for (uint64_t trial = 0; trial < 200; ++trial) {
      Rng rng(stream_key(6, {trial}));
      Bytes bytes = whole;
      const auto reach = static_cast<int64_t>(trial % 2 == 0 ? 700 : bytes.size());
      bytes[static_cast<size_t>(rng.below(reach))] ^= static_cast<uint8_t>(1 << rng.below(8));
      try {
        JpegFile file(as_span(bytes), kind);
        const Box box = random_resized_box(file.width(), file.height(), {0.01, 1}, {0.5, 2}, rng);
        const JpegPart part = file.read(box, 1 << rng.below(4));
        crop(part.image, part.box);  // which checks that it is inside
      } catch (const Error& e) {
        ++refused;
        ASSERT_EQ(e.kind(), ErrorKind::kData) << e.what();
      }
    }
  }
  EXPECT_GT(refused, 100);
}

TEST_F(JpegPartTest, TruncatedHeadersAndFalseBoxesAreRefused) {
  const Bytes bytes = files().read("rgb420_37x53.jpg");
  const Bytes cut(bytes.begin(), bytes.begin() + 100);
  expect_error(ErrorKind::kData, {"cat.jpg: ", "broken or truncated"},
               [&] { JpegFile(as_span(cut), "cat.jpg"); });
  expect_error(ErrorKind::kInternal, {"not inside 37 x 53"}, [&] {
    JpegFile(as_span(bytes), "cat.jpg").read({30, 0, 8, 8});
  });
}

}  // namespace
}  // namespace adjoin::data
