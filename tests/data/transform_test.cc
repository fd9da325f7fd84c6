#include "adjoin/data/transform.h"

#include <gtest/gtest.h>

#include <sstream>

#include "adjoin/data/inputs.h"
#include "adjoin/spec/catalog.h"
#include "support/expect_error.h"
#include "support/model_files.h"
#include "support/python_folder.h"

namespace adjoin::data {
namespace {

TEST(TransformTest, IsThatOfTorchvision) {
  const PythonFolder folder("data/write_eval_inputs.py", "PIL, numpy");
  if (!folder.missing().empty()) GTEST_SKIP() << folder.missing();
  std::istringstream cases(read_file(folder / "cases.txt"));
  int count = 0;
  std::string name, interpolation;
  int64_t size = 0;
  double crop_pct = 0;
  for (; cases >> name >> size >> crop_pct >> interpolation; ++count) {
    SCOPED_TRACE(name);
    const std::string png = read_file(folder / (name + ".png"));
    const Image image = decode_image(std::as_bytes(std::span(png)), name, 3);
    Preprocessing preprocessing{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}, crop_pct};
    preprocessing.interpolation =
        interpolation == "bicubic" ? Interpolation::kBicubic : Interpolation::kBilinear;
    const auto ours = eval_input(image, preprocessing, size, name);
    std::string raw = read_file(folder / (name + ".bin"));
    const auto wanted = torch::from_blob(raw.data(), {3, size, size}, torch::kFloat32);
    ASSERT_EQ(ours.sizes(), wanted.sizes());
    EXPECT_LT((ours - wanted).abs().max().item<double>(), 1e-6);
  }
  EXPECT_EQ(count, 5);
}

TEST(TransformTest, RefusesImagesTooLongAndThin) {
  const Image strip{4000, 2, 3, std::vector<uint8_t>(4000 * 2 * 3)};
  const Preprocessing preprocessing{{0, 0, 0}, {1, 1, 1}, 0.9};
  expect_error(ErrorKind::kData, {"strip.png: 4000 x 2 pixels", "32 times"},
               [&] { eval_input(strip, preprocessing, 224, "strip.png"); });
}

TEST(InputsTest, TensorsKeepTheirValuesAndLabels) {
  const TempFolder folder;
  const ModelSpec spec = catalog_spec("vit_mini_28");
  const io::ModelHeader header{spec, {}, default_preprocessing(spec), {}};
  const auto inputs = read_inputs(write_input(folder / "x.safetensors", spec, 2, {4, 7}), header);
  ASSERT_EQ(inputs.size(), 2U);
  EXPECT_EQ(inputs[1].name, folder / "x.safetensors[1]");
  EXPECT_EQ(inputs[1].label, 7);
  EXPECT_EQ(inputs[1].image.sizes(), (std::vector<int64_t>{1, 28, 28}));
  EXPECT_FALSE(read_inputs(write_input(folder / "y.safetensors", spec, 1), header)[0].label);
}

TEST(InputsTest, AnImageFileBecomesGreyWhereTheNetworkIs) {
  const PythonFolder files("data/write_eval_inputs.py", "PIL, numpy");
  if (!files.missing().empty()) GTEST_SKIP() << files.missing();
  const ModelSpec spec = catalog_spec("vit_mini_28");
  const auto inputs = read_inputs(files / "wide.png", {spec, {}, default_preprocessing(spec), {}});
  ASSERT_EQ(inputs.size(), 1U);
  EXPECT_EQ(inputs[0].image.sizes(), (std::vector<int64_t>{1, 28, 28}));
  ModelSpec many = spec;
  many.in_chans = 4;
  expect_error(ErrorKind::kData, {"wide.png", "4 channels"}, [&] {
    read_inputs(files / "wide.png", {many, {}, default_preprocessing(many), {}});
  });
}

}  // namespace
}  // namespace adjoin::data
