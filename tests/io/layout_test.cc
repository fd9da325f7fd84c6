#include "adjoin/io/layout.h"

#include <gtest/gtest.h>

#include "adjoin/io/recognise.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/derive.h"
#include "support/expect_error.h"

namespace adjoin::io {
namespace {

void put(TensorFile& file, const std::string& name, std::vector<int64_t> shape,
         Dtype dtype = Dtype::kF32) {
  std::vector<int64_t> strides(shape.size());  // nothing here looks at numbers
  file.tensors[name] = {dtype, std::move(shape), std::move(strides), nullptr};
}

/// The tensors of a network without their numbers, under the names of a layout.
TensorFile file_of(const ModelSpec& spec, Layout layout) {
  TensorFile file;
  file.file.origin = "model.pth";
  for (const TensorInfo& info : tensors(spec)) {
    put(file, name_in(layout, spec, info.name), info.shape());
  }
  return file;
}

const ModelSpec kDeit = catalog_spec("deit_tiny_patch16_224");
const ModelSpec kSwin = catalog_spec("swin_tiny_patch4_window7_224");

TEST(LayoutTest, ThePublicKeyMapOfSwinHoldsBothWays) {
  const Json map = read_json_file(std::string(ADJOIN_GOLDEN_DIR) + "/swin_timm_key_map.json");
  std::map<std::string, std::string> ours;  // official name -> ours
  for (const TensorInfo& info : tensors(kSwin)) {
    ours[name_in(Layout::kOfficial, kSwin, info.name)] = info.name;
  }
  TensorFile official, timm_old, timm_new;
  size_t params = 0, buffers = 0;
  for (const Json& entry : map["all"]) {
    const auto shape = entry["shape"].get<std::vector<int64_t>>();
    const bool is_buffer = entry["kind"] == "buffer";
    const Dtype dtype = is_buffer ? Dtype::kI64 : Dtype::kF32;
    put(official, entry["official"], shape, dtype);
    put(timm_old, entry["timm_old"], shape, dtype);
    if (is_buffer) {
      ++buffers;
      continue;
    }
    put(timm_new, entry["timm_new"], shape, dtype);
    ++params;
    EXPECT_EQ(ours.at(entry["official"]), entry["timm_new"].get<std::string>());
  }
  EXPECT_EQ(params, ours.size());
  for (const auto& [file, layout] : {std::pair(&official, Layout::kOfficial),
                                     {&timm_old, Layout::kOfficial},
                                     {&timm_new, Layout::kTimm}}) {
    const Fit found = fit(kSwin, *file);
    EXPECT_TRUE(found.is_exact()) << describe(found);
    EXPECT_EQ(found.layout, layout);
    EXPECT_EQ(found.found.size(), params);
    EXPECT_EQ(found.buffers.size(), file == &timm_new ? 0 : buffers);
  }
  const Fit moved = fit(kSwin, official);  // what stage 0 ends with is what stage 1 begins with
  EXPECT_EQ(moved.found.at("layers.1.downsample.reduction.weight")->shape,
            (std::vector<int64_t>{192, 384}));
}

TEST(LayoutTest, BuffersThatTimmStoredUpTo095AreTakenAsSuch) {
  TensorFile file = file_of(kSwin, Layout::kTimm);
  put(file, "layers.0.blocks.1.attn_mask", {64, 49, 49});
  put(file, "layers.0.blocks.1.attn.relative_position_index", {49, 49}, Dtype::kI64);
  const Fit found = fit(kSwin, file);
  EXPECT_TRUE(found.is_exact());
  EXPECT_EQ(found.buffers.size(), 2U);
}

TEST(LayoutTest, WhatDoesNotFitIsListedByName) {
  TensorFile file = file_of(kDeit, Layout::kTimm);
  for (int i = 3; i < 9; ++i) file.tensors.erase("blocks." + std::to_string(i) + ".norm1.weight");
  file.tensors.erase("cls_token");
  put(file, "head.weight", {10, 192});
  put(file, "norm.bias", {192}, Dtype::kI64);
  put(file, "aux.weight", {3});
  file.not_tensors = {"epoch"};
  for (const char* block : {"2", "10", "11", "20"}) {  // a map holds them as 10, 11, 2, 20
    put(file, std::string("blocks.") + block + ".gamma", {1});
  }
  const Fit found = fit(kDeit, file);
  EXPECT_FALSE(found.is_exact());
  EXPECT_EQ(describe(found),
            "7 tensors are missing (cls_token, blocks.3-8.norm1.weight); 6 tensors are unexpected "
            "(aux.weight, blocks.2,10-11,20.gamma, epoch, which is no tensor); 2 tensors are of "
            "another shape or type (norm.bias "
            "holds I64, must hold floats, head.weight is (10, 192), must be (1000, 192))");
}

TEST(LayoutTest, EveryModelOfTheCatalogIsRecognisedByItsTensors) {
  for (const std::string& name : catalog_names()) {
    const ModelSpec spec = catalog_spec(name);
    for (const Layout layout : {Layout::kTimm, Layout::kOfficial}) {
      const Recognised found = recognise(file_of(spec, layout));
      const bool is_it = found.spec == spec || std::find(found.others.begin(), found.others.end(),
                                                         name) != found.others.end();
      EXPECT_TRUE(is_it) << name << " was taken for " << found.spec.name;
    }
  }
}

TEST(LayoutTest, ClassesChannelsAndImageSizeAreRecognisedToo) {
  ModelSpec spec = kDeit;
  spec.num_classes = 37;
  spec.in_chans = 4;
  spec.img_size = 384;
  EXPECT_EQ(recognise(file_of(spec, Layout::kTimm)).spec, spec);
  spec = kSwin;
  spec.num_classes = 21841;
  EXPECT_EQ(recognise(file_of(spec, Layout::kOfficial)).spec, spec);
}

TEST(LayoutTest, TwinsOfTheCatalogAreNamed) {
  const Recognised found = recognise(file_of(kDeit, Layout::kTimm));
  EXPECT_EQ(found.spec.name, "deit_tiny_patch16_224");
  EXPECT_EQ(found.others, std::vector<std::string>{"vit_tiny_patch16_224"});
}

TEST(LayoutTest, StrangersAreRefused) {
  TensorFile file;
  file.file.origin = "resnet.pth";
  put(file, "conv1.weight", {64, 3, 7, 7});
  expect_error(ErrorKind::kData, {"resnet.pth", "conv1.weight", "no family"},
               [&] { recognise(file); });
  const Derived small = derive(kDeit, choice_from_alphas(kDeit, {3}), Geometry::kKept);
  expect_error(ErrorKind::kData, {"family vit", "--model"},
               [&] { recognise(file_of(small.spec, Layout::kTimm)); });
}

TEST(LayoutTest, HugeShapesOfEmptyTensorsDoNoHarm) {
  TensorFile file = file_of(kDeit, Layout::kTimm);
  constexpr int64_t kHuge = int64_t{1} << 62;
  put(file, "head.weight", {kHuge, 0});
  put(file, "patch_embed.proj.weight", {0, kHuge, kHuge, kHuge});
  put(file, "pos_embed", {1, kHuge, 192});
  expect_error(ErrorKind::kData, {"family vit"}, [&] { recognise(file); });
  const Fit found = fit(kDeit, file);
  EXPECT_EQ(found.misfits.size(), 3U);
  for (const Misfit& misfit : found.misfits) EXPECT_FALSE(as_resize(kDeit, misfit));
}

TEST(LayoutTest, PositionsOfAnotherGridCanBeResized) {
  ModelSpec large = kDeit;
  large.img_size = 384;
  const Fit found = fit(large, file_of(kDeit, Layout::kTimm));
  ASSERT_EQ(found.misfits.size(), 1U);
  const auto resize = as_resize(large, found.misfits[0]);
  ASSERT_TRUE(resize);
  EXPECT_EQ(resize->prefix, 1);
  EXPECT_EQ(resize->from, 14);
  EXPECT_EQ(resize->to, 24);
  TensorFile other = file_of(kDeit, Layout::kTimm);
  put(other, "pos_embed", {1, 197, 100});  // another width is no matter of size
  EXPECT_FALSE(as_resize(kDeit, fit(kDeit, other).misfits.at(0)));
  put(other, "pos_embed", {1, 200, 192});  // 199 is no square
  EXPECT_FALSE(as_resize(kDeit, fit(kDeit, other).misfits.at(0)));
}

}  // namespace
}  // namespace adjoin::io
