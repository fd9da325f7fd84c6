// Real photographs, which stand beside the project's folder and not in it.

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "adjoin/core/place.h"
#include "adjoin/data/transform.h"
#include "support/python_folder.h"

namespace adjoin::data {
namespace {

// 99.9 % of the values within one grey level.
TEST(SampleTest, EvaluationInputsOfPhotographsAreThoseOfPil) {
  const std::string archive =
      std::string(ADJOIN_GOLDEN_DIR) + "/../../../shared/data/imagenet-sample-125.tar";
  if (place_at(archive) != Place::kFile) GTEST_SKIP() << "there is no " << archive;
  const PythonFolder folder("data/write_sample_inputs.py", "PIL");
  if (!folder.missing().empty()) GTEST_SKIP() << folder.missing();
  const Preprocessing preprocessing{{0, 0, 0}, {1, 1, 1}, 0.875, Interpolation::kBicubic};
  std::istringstream names(read_file(folder / "names.txt"));
  int count = 0;
  int64_t far = 0;
  for (std::string name; names >> name; ++count) {
    const std::string bytes = read_file(folder / name);
    const Image image = decode_image(std::as_bytes(std::span(bytes)), name, 3);
    const auto ours = eval_input(image, preprocessing, 224, name).mul(255).permute({1, 2, 0});
    std::string raw = read_file(folder / (name + ".rgb"));
    ASSERT_EQ(raw.size(), 224U * 224 * 3) << name;
    const auto wanted = torch::from_blob(raw.data(), {224, 224, 3}, torch::kUInt8);
    far += (ours - wanted).abs().gt(1.01).sum().item<int64_t>();
  }
  EXPECT_EQ(count, 125);
  EXPECT_LE(far, 125 * 224 * 224 * 3 / 1000);
}

}  // namespace
}  // namespace adjoin::data
