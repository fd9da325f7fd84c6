#include "adjoin/data/image.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "data/pil_images.h"

namespace adjoin::data {
namespace {

class ImageTest : public PilTest {
 protected:
  /// Every file whose name opens so decodes to PIL's pixels, bit for bit; how many there were.
  int compare(const std::string& opening, const std::string& ending) {
    int count = 0;
    for (const std::string& line : files().lines("images.txt")) {
      std::istringstream words(line);
      std::string name;
      int64_t width = 0;
      int64_t height = 0;
      words >> name >> width >> height;
      if (!name.starts_with(opening) || !name.ends_with(ending)) continue;
      ++count;
      for (const int64_t channels : {1, 3}) {
        const Image image = decode_image(as_span(files().read(name)), name, channels);
        EXPECT_EQ(image.width, width) << name;
        EXPECT_EQ(image.height, height) << name;
        EXPECT_EQ(image.channels, channels) << name;
        const Bytes want = files().read(name + (channels == 1 ? ".grey" : ".rgb"));
        EXPECT_EQ(difference(image.pixels, want), "") << name << ", " << channels << " channels";
      }
    }
    return count;
  }
};

TEST_F(ImageTest, ColorJpegsDecodeAsInPil) {
  EXPECT_EQ(compare("rgb4", ".jpg"), 12);
  EXPECT_EQ(compare("rgbjpeg", ".jpg"), 4);
}

TEST_F(ImageTest, ProgressiveJpegsDecodeAsInPil) {
  EXPECT_EQ(compare("progressive", ".jpg"), 4);
  EXPECT_EQ(compare("greyprogressive", ".jpg"), 4);
}

TEST_F(ImageTest, GreyJpegsKeepTheirOwnValues) { EXPECT_EQ(compare("grey_", ".jpg"), 4); }

TEST_F(ImageTest, JpegsOfFourInksDecodeAsInPil) {
  EXPECT_EQ(compare("cmyk", ".jpg"), 4);
  EXPECT_EQ(compare("ycck", ".jpg"), 4);
}

TEST_F(ImageTest, GreyPngsOfAllDepthsDecodeAsInPilAndKeepTheUpperByteOfSixteenBits) {
  EXPECT_EQ(compare("grey", ".png"), 42);
}

TEST_F(ImageTest, ColorPngsDecodeAsInPilWithoutTheirAlpha) {
  EXPECT_EQ(compare("rgb", ".png"), 25);
}

TEST_F(ImageTest, PalettePngsDecodeAsInPilWithoutTheirTransparency) {
  EXPECT_EQ(compare("palette", ".png"), 24);
}

TEST_F(ImageTest, BytesBetweenTheLastScanAndTheEndMarkerDoNoHarm) {
  const std::string name = "rgb420_37x53.jpg";
  Bytes bytes = files().read(name);
  for (const uint8_t extra : {'a', 'b', 'c'}) bytes.insert(bytes.end() - 2, extra);
  const Image image = decode_image(as_span(bytes), name, 3);
  EXPECT_EQ(difference(image.pixels, files().read(name + ".rgb")), "");
}

TEST_F(ImageTest, BytesAfterTheEndMarkerDoNoHarm) {
  const std::string name = "rgb420_37x53.jpg";
  Bytes bytes = files().read(name);
  bytes.resize(bytes.size() + 100, 0xFF);
  const Image image = decode_image(as_span(bytes), name, 3);
  EXPECT_EQ(difference(image.pixels, files().read(name + ".rgb")), "");
}

}  // namespace
}  // namespace adjoin::data
