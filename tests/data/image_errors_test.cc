#include <gtest/gtest.h>
#include <zlib.h>

#include <random>
#include <string>
#include <string_view>

#include "adjoin/data/image.h"
#include "data/pil_images.h"
#include "support/expect_error.h"

namespace adjoin::data {
namespace {

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

void append_number(Bytes& bytes, uint32_t number) {
  for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<uint8_t>(number >> shift));
}

void append_chunk(Bytes& png, std::string_view name, const Bytes& data) {
  append_number(png, static_cast<uint32_t>(data.size()));
  Bytes body = bytes_of(name);
  body.insert(body.end(), data.begin(), data.end());
  png.insert(png.end(), body.begin(), body.end());
  append_number(png, static_cast<uint32_t>(crc32(0, body.data(), static_cast<uInt>(body.size()))));
}

struct PngClaim {
  uint32_t width = 1;
  uint32_t height = 1;
  uint8_t bits = 8;
  uint8_t kind = 2;  ///< 2 RGB, 3 palette
  Bytes palette = {};
  Bytes rows = {};  ///< each behind a filter byte
};

/// Checksums are right whatever is claimed.
Bytes png(const PngClaim& claim) {
  Bytes header;
  append_number(header, claim.width);
  append_number(header, claim.height);
  for (const uint8_t value : {claim.bits, claim.kind, uint8_t{0}, uint8_t{0}, uint8_t{0}}) {
    header.push_back(value);
  }
  uLongf size = compressBound(claim.rows.size());
  Bytes packed(size);
  compress(packed.data(), &size, claim.rows.data(), claim.rows.size());
  packed.resize(size);
  Bytes result = bytes_of("\x89PNG\r\n\x1A\n");
  append_chunk(result, "IHDR", header);
  if (!claim.palette.empty()) append_chunk(result, "PLTE", claim.palette);
  append_chunk(result, "IDAT", packed);
  append_chunk(result, "IEND", {});
  return result;
}

void expect_refused(const Bytes& bytes, std::initializer_list<std::string_view> parts) {
  expect_error(ErrorKind::kData, parts, [&] { decode_image(as_span(bytes), "cat.jpg", 3); });
}

TEST(ImageErrorsTest, EmptyFilesAreRefused) { expect_refused({}, {"cat.jpg: ", "empty"}); }

TEST(ImageErrorsTest, OtherFormatsAreRefusedByNamingTheRightOnes) {
  using namespace std::string_view_literals;
  for (const std::string_view text :
       {"GIF89a\x01\x00\x01\x00"sv, "RIFF\x24\0\0\0WEBPVP8 "sv, "BM\x46\0\0\0"sv, "II*\0"sv,
        "<html></html>"sv, "\xFF\xD8"sv, "\x89PNG\r\n\x1A"sv, "\0"sv}) {
    EXPECT_FALSE(looks_like_image(as_span(bytes_of(text))));
    expect_refused(bytes_of(text), {"cat.jpg: ", "JPEG or PNG"});
  }
}

TEST(ImageErrorsTest, FilesThatOnlyOpenRightAreRefused) {
  for (const std::string_view text : {"\xFF\xD8\xFF", "\xFF\xD8\xFF\xD9", "\x89PNG\r\n\x1A\n"}) {
    EXPECT_TRUE(looks_like_image(as_span(bytes_of(text))));
    expect_refused(bytes_of(text), {"cat.jpg: ", "broken or truncated"});
  }
}

TEST(ImageErrorsTest, ChannelsOtherThanOneAndThreeAreRefused) {
  const Bytes bytes = png({.rows = {0, 1, 2, 3}});
  EXPECT_EQ(decode_image(as_span(bytes), "dot", 3).pixels, (Bytes{1, 2, 3}));
  for (const int64_t channels : {-1, 0, 2, 4}) {
    expect_error(ErrorKind::kConfig, {"dot: ", "1 or 3", std::to_string(channels)},
                 [&] { decode_image(as_span(bytes), "dot", channels); });
  }
}

TEST(ImageErrorsTest, PngsThatClaimTooManyPixelsAreRefusedBeforeTheyAreAllocated) {
  expect_refused(png({.width = 60'000, .height = 60'000}), {"60,000 x 60,000", "178,956,970"});
  expect_refused(png({.width = 65'501, .height = 1}), {"65,501 x 1", "65,500"});
  expect_refused(png({.width = 1, .height = 0x7FFFFFFF}), {"1 x 2,147,483,647"});
  expect_refused(png({.width = 0, .height = 1}), {"broken or truncated"});
  expect_refused(png({.width = 0xFFFFFFFF, .height = 1}), {"broken or truncated"});
}

TEST(ImageErrorsTest, PngsWithFewerRowsThanTheyClaimAreRefused) {
  expect_refused(png({.width = 1, .height = 2, .rows = {0, 1, 2, 3}}), {"broken or truncated"});
}

TEST(ImageErrorsTest, PngsOfUnknownKindsAreRefused) {
  expect_refused(png({.bits = 3, .rows = {0, 0}}), {"broken or truncated"});
  expect_refused(png({.kind = 5, .rows = {0, 0}}), {"broken or truncated"});
}

TEST(ImageErrorsTest, PalettePngsWithoutTheColorOfAPixelAreRefused) {
  expect_refused(png({.kind = 3, .rows = {0, 0}}), {"broken or truncated", "PLTE"});
  expect_refused(png({.kind = 3, .palette = {1, 2, 3, 4, 5, 6}, .rows = {0, 2}}),
                 {"color 2", "palette of 2"});
}

/// A progressive grey JPEG of one block, whose only coefficient is sent again in each scan.
Bytes jpeg_of_scans(int count) {
  Bytes jpeg = {0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0};
  jpeg.insert(jpeg.end(), 64, 1);  // quantization
  const Bytes frame = {0xFF, 0xC2, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0};
  jpeg.insert(jpeg.end(), frame.begin(), frame.end());
  const Bytes huffman = {0xFF, 0xC4, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  jpeg.insert(jpeg.end(), huffman.begin(), huffman.end());
  const Bytes scan = {0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 0, 0, 0x7F};
  for (int i = 0; i < count; ++i) jpeg.insert(jpeg.end(), scan.begin(), scan.end());
  jpeg.insert(jpeg.end(), {0xFF, 0xD9});
  return jpeg;
}

TEST(ImageErrorsTest, JpegsWithScansWithoutEndAreRefused) {
  EXPECT_EQ(decode_image(as_span(jpeg_of_scans(400)), "scans", 1).pixels, Bytes(64, 128));
  expect_refused(jpeg_of_scans(600), {"501 scans are too many"});
}

class BrokenFileTest : public PilTest {
 protected:
  /// One file of each kind, small enough to be broken in many places.
  std::vector<std::string> small_files() {
    std::vector<std::string> names;
    for (const std::string& line : files().lines("images.txt")) {
      const std::string name = line.substr(0, line.find(' '));
      if (contains(name, "37x53")) names.push_back(name);
    }
    return names;
  }
};

TEST_F(BrokenFileTest, ClaimedJpegSizesBeyondTheLimitsAreRefused) {
  Bytes bytes = files().read("rgb420_37x53.jpg");
  const Bytes frame = {0xFF, 0xC0};
  const auto at = std::search(bytes.begin(), bytes.end(), frame.begin(), frame.end());
  ASSERT_LT(at - bytes.begin() + 9, static_cast<int64_t>(bytes.size()));
  std::fill(at + 5, at + 9, 0xF0);  // 61,680 x 61,680
  expect_refused(bytes, {"61,680 x 61,680", "178,956,970"});
  std::fill(at + 5, at + 9, 0xFF);
  expect_refused(bytes, {"broken or truncated", "65500"});
  std::fill(at + 5, at + 9, 0);
  expect_refused(bytes, {"broken or truncated"});
}

TEST_F(BrokenFileTest, EveryTruncationIsRefused) {
  for (const std::string& name : small_files()) {
    const Bytes whole = files().read(name);
    for (size_t length = 0; length < whole.size(); length += 37) {
      SCOPED_TRACE(name + " cut to " + std::to_string(length));
      expect_refused({whole.begin(), whole.begin() + static_cast<int64_t>(length)}, {"cat.jpg: "});
    }
    SCOPED_TRACE(name + " without its last byte");
    expect_refused({whole.begin(), whole.end() - 1}, {"broken or truncated"});
  }
}

TEST_F(BrokenFileTest, FlippedBitsGiveAnImageOfSoundSizeOrARefusal) {
  std::mt19937 random(1);
  int refused = 0;
  for (const std::string& name : small_files()) {
    const Bytes whole = files().read(name);
    for (int trial = 0; trial < 200; ++trial) {
      Bytes bytes = whole;
      // Headers are a small part of a file and the most rewarding one to break.
      const size_t reach = trial % 2 == 0 ? std::min<size_t>(700, bytes.size()) : bytes.size();
      for (int flips = 1 + trial % 3; flips > 0; --flips) {
        bytes[random() % reach] ^= static_cast<uint8_t>(1 << random() % 8);
      }
      try {
        const Image image = decode_image(as_span(bytes), name, trial % 4 < 2 ? 3 : 1);
        ASSERT_EQ(static_cast<int64_t>(image.pixels.size()),
                  image.width * image.height * image.channels);
      } catch (const Error& e) {
        ++refused;
        ASSERT_EQ(static_cast<int>(e.kind()), static_cast<int>(ErrorKind::kData)) << e.what();
        ASSERT_TRUE(std::string_view(e.what()).starts_with(name + ": ")) << e.what();
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace adjoin::data
