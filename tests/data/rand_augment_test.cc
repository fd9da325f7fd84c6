#include "adjoin/data/rand_augment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <sstream>

#include "data/pil_images.h"
#include "support/expect_error.h"
#include "support/python_folder.h"

namespace adjoin::data {
namespace {

const AugmentOperation& operation(std::string_view name) {
  for (const AugmentOperation& candidate : augment_operations()) {
    if (candidate.name == name) return candidate;
  }
  throw std::runtime_error("no operation " + std::string(name));
}

bool moves_pixels(std::string_view name) {
  return name == "Rotate" || name.starts_with("Shear") || name.starts_with("Translate");
}

Bytes bytes_in(const std::string& path) {
  const std::string text = read_file(path);
  return {text.begin(), text.end()};
}

/// How many values are more than one grey level apart.
size_t count_far(const Bytes& got, const Bytes& want) {
  size_t count = 0;
  for (size_t i = 0; i < got.size(); ++i) count += std::abs(got[i] - want[i]) > 1 ? 1 : 0;
  return count;
}

// Operations that leave pixels in place: bit for bit. Those that move them: 99.9 % of the values
// within one grey level.
TEST(AugmentOperationTest, GivesThePixelsOfPil) {
  const PythonFolder folder("data/write_augmentations.py", "PIL");
  if (!folder.missing().empty()) GTEST_SKIP() << folder.missing();
  std::istringstream cases(read_file(folder / "cases.txt"));
  std::map<std::string, int> counts;
  size_t moved = 0;
  size_t far = 0;
  for (std::string line; std::getline(cases, line);) {
    SCOPED_TRACE(line);
    std::istringstream words(line);
    std::string result, source, name, filter;
    Image image;
    double argument = 0;
    words >> result >> source >> image.channels >> image.width >> image.height >> name >>
        argument >> filter;
    image.pixels = bytes_in(folder / source);
    operation(name).apply(image, argument,
                          filter == "bicubic" ? Interpolation::kBicubic : Interpolation::kBilinear);
    const Bytes want = bytes_in(folder / result);
    ASSERT_EQ(image.pixels.size(), want.size());
    ++counts[name];
    if (moves_pixels(name)) {
      moved += want.size();
      far += count_far(image.pixels, want);
    } else {
      EXPECT_EQ(difference(image.pixels, want), "");
    }
  }
  EXPECT_EQ(counts.size(), augment_operations().size());
  EXPECT_GT(moved, 500'000U);
  EXPECT_LE(far, moved / 1000);
}

TEST(AugmentOperationTest, ArgumentsFollowTheRulesOfTimm) {
  struct Case {
    std::string_view name;
    double plain;       // at 9, up to its sign
    double increasing;  // how far from what changes nothing, at 9 of 10
    double neutral;
  };
  for (const Case& c : std::vector<Case>{{"Rotate", 27, 27, 0},
                                         {"Posterize", 3, 3, 4},
                                         {"Solarize", 230, 230, 256},
                                         {"SolarizeAdd", 99, 99, 0},
                                         {"Color", 1.72, 0.81, 1},
                                         {"Contrast", 1.72, 0.81, 1},
                                         {"Brightness", 1.72, 0.81, 1},
                                         {"Sharpness", 1.72, 0.81, 1},
                                         {"ShearX", 0.27, 0.27, 0},
                                         {"ShearY", 0.27, 0.27, 0},
                                         {"TranslateXRel", 0.405, 0.405, 0},
                                         {"TranslateYRel", 0.405, 0.405, 0}}) {
    SCOPED_TRACE(c.name);
    const auto& op = operation(c.name);
    Rng rng(5);
    for (int i = 0; i < 8; ++i) {
      EXPECT_NEAR(std::abs(op.argument(9, false, rng)), c.plain, 1e-12);
      EXPECT_NEAR(std::abs(op.argument(9, true, rng) - c.neutral), c.increasing, 1e-12);
      EXPECT_NEAR(op.argument(0, true, rng), c.neutral, 1e-12);
    }
  }
}

TEST(AugmentOperationTest, DirectionsAreDrawnEitherWay) {
  Rng rng(3);
  for (const std::string_view name : {"Rotate", "ShearX", "TranslateYRel", "Color"}) {
    int above = 0;
    const double neutral = name == "Color" ? 1 : 0;
    for (int i = 0; i < 200; ++i) above += operation(name).argument(5, true, rng) > neutral ? 1 : 0;
    EXPECT_GT(above, 60) << name;
    EXPECT_LT(above, 140) << name;
  }
}

TEST(AugmentOperationTest, SaturationLeavesGreyImagesAlone) {
  Image image{2, 2, 1, {0, 90, 200, 255}};
  operation("Color").apply(image, 1.9, Interpolation::kBilinear);
  EXPECT_EQ(image.pixels, (Bytes{0, 90, 200, 255}));
}

Image ramp() {
  Image image{16, 16, 3, {}};
  for (int i = 0; i < 16 * 16 * 3; ++i) image.pixels.push_back(static_cast<uint8_t>(i * 7 % 251));
  return image;
}

double changed_share(const RandAugment& settings) {
  int changed = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    Image image = ramp();
    Rng rng(stream_key(1, {i}));
    apply_rand_augment(settings, TrainInterpolation::kRandom, image, rng);
    changed += image.pixels != ramp().pixels ? 1 : 0;
  }
  return changed / 400.0;
}

TEST(RandAugmentTest, OperationsAreAppliedWithTheirProbability) {
  EXPECT_EQ(changed_share({.probability = 0}), 0);
  EXPECT_GT(changed_share({.layers = 1, .probability = 1}),
            0.9);  // AutoContrast may change nothing
  const double half = changed_share({.layers = 1, .probability = 0.5});
  EXPECT_GT(half, 0.38);
  EXPECT_LT(half, 0.58);
}

TEST(RandAugmentTest, IsReadAsTimmWritesIt) {
  const RandAugment deit = parse_rand_augment("rand-m9-mstd0.5-inc1");
  EXPECT_EQ(deit.magnitude, 9);
  EXPECT_EQ(deit.magnitude_std, 0.5);
  EXPECT_EQ(deit.magnitude_max, 10);
  EXPECT_EQ(deit.layers, 2);
  EXPECT_EQ(deit.probability, 0.5);
  EXPECT_TRUE(deit.is_increasing);
  const RandAugment other = parse_rand_augment("rand-n3-p0.7-mmax20-m12-mstd101");
  EXPECT_EQ(other.layers, 3);
  EXPECT_EQ(other.probability, 0.7);
  EXPECT_EQ(other.magnitude, 12);
  EXPECT_EQ(other.magnitude_max, 20);
  EXPECT_EQ(other.magnitude_std, std::numeric_limits<double>::infinity());
  EXPECT_FALSE(other.is_increasing);
  EXPECT_EQ(parse_rand_augment("rand").magnitude, 10);
  EXPECT_EQ(parse_rand_augment("rand-mstdinf").magnitude_std,
            std::numeric_limits<double>::infinity());
}

TEST(RandAugmentTest, WrongStringsAreRefusedByNamingThePart) {
  const auto refused = [](const std::string& text, std::string_view part) {
    SCOPED_TRACE(text);
    expect_error(ErrorKind::kConfig, {"aa: ", part}, [&] { parse_rand_augment(text); });
  };
  refused("", "only RandAugment");
  refused("augmix-m9", "only RandAugment");
  refused("randm9", "only RandAugment");
  refused("rand-", "last -");
  refused("rand-m9-", "last -");
  refused("rand--m9", "unknown part \"\"");
  refused("rand-x3", "unknown part \"x3\"");
  refused("rand-w0", "unknown part \"w0\"");
  refused("rand-m", "\"m\"");
  refused("rand-m9x", "\"m9x\"");
  refused("rand-m-1", "\"m\"");
  refused("rand-mnan", "\"mnan\"");
  refused("rand-minf", "\"minf\"");
  refused("rand-m11", "m11 is above the strongest, 10");
  refused("rand-m9-mmax5", "above the strongest, 5");
  refused("rand-mmax31", "1 to 30");
  refused("rand-mstdnan", "\"mstdnan\"");
  refused("rand-n0", "1 to 15");
  refused("rand-n1.5", "whole number");
  refused("rand-p1.1", "0 to 1");
  refused("rand-inc0", "\"inc0\"");
  refused("rand-m9-m8", "m is given twice");
}

}  // namespace
}  // namespace adjoin::data
