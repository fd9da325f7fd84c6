#include "adjoin/io/model_file.h"

#include <gtest/gtest.h>

#include "adjoin/spec/catalog.h"
#include "adjoin/spec/derive.h"
#include "support/expect_error.h"
#include "support/model_files.h"
#include "support/temp_folder.h"

namespace adjoin::io {
namespace {

class ModelFileTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const ModelSpec& network,
                    const std::map<std::string, std::string, std::less<>>& metadata) {
    return write_model(folder / name, network, metadata);
  }

  TempFolder folder;
  ModelSpec spec = catalog_spec("vit_mini_28");
};

TEST_F(ModelFileTest, AHeaderComesBackAsItWasWritten) {
  ModelHeader header;
  header.spec = derive(spec, choice_from_alphas(spec, {4}), Geometry::kKept).spec;
  for (int i = 0; i < 10; ++i) header.classes.push_back("class \"" + std::to_string(i) + "\" é");
  header.preprocessing = {{0.25}, {0.125}, 0.875, Interpolation::kBilinear};
  header.provenance = {7, "abc", "fnv1a:0123"};
  const ModelFile file = open_model(write("m.safetensors", header.spec, to_metadata(header)));
  EXPECT_EQ(file.header.spec, header.spec);
  EXPECT_EQ(file.header.classes, header.classes);
  EXPECT_EQ(file.header.preprocessing, header.preprocessing);
  EXPECT_EQ(file.header.provenance, header.provenance);
  EXPECT_TRUE(fit(file.header.spec, file.content).is_exact());
  EXPECT_TRUE(file.notes.empty());
}

TEST_F(ModelFileTest, AForeignFileIsRecognisedOrNamed) {
  const std::string path = write("foreign.safetensors", spec, {});
  const ModelFile found = open_model(path);
  EXPECT_EQ(found.header.spec, spec);
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_TRUE(contains(found.notes[0], "recognised as vit_mini_28")) << found.notes[0];
  EXPECT_EQ(open_model(path, {"vit_mini_28.some_tag", {}}).header.spec, spec);
  EXPECT_EQ(open_model(path, {"vit_mini_28", {{"num_classes", "3"}}}).header.spec.num_classes, 3);
  expect_error(ErrorKind::kUsage, {"vit_mini_27", "vit_mini_28"}, [&] {
    open_model(path, {"vit_mini_27", {}});
  });
}

TEST_F(ModelFileTest, OurOwnFileNeedsNoModel) {
  ModelHeader header{spec, {}, default_preprocessing(spec), {}};
  const std::string path = write("own.safetensors", spec, to_metadata(header));
  expect_error(ErrorKind::kUsage, {"own.safetensors", "leave --model out"}, [&] {
    open_model(path, {"vit_mini_32", {}});
  });
  EXPECT_EQ(open_model(path, {spec.name, {}}).header.spec.name, spec.name);
}

TEST_F(ModelFileTest, AHubFolderSaysItsArchitectureAndPreprocessing) {
  const ModelSpec swin = catalog_spec("swin_mini_32");
  write("model.safetensors", swin, {{"format", "pt"}});
  folder.write("config.json", R"({"architecture": "swin_mini_32", "num_classes": 10,
    "label_names": ["a","b","c","d","e","f","g","h","i","j"],
    "pretrained_cfg": {"tag": "x", "input_size": [3, 32, 32], "interpolation": "bilinear",
    "crop_pct": 0.95, "mean": [0.1, 0.2, 0.3], "std": [0.4, 0.5, 0.6], "pool_size": null}})");
  const ModelFile file = open_model(folder.path());
  EXPECT_EQ(file.header.spec, swin);
  EXPECT_EQ(file.header.classes.at(2), "c");
  EXPECT_EQ(file.header.preprocessing,
            (Preprocessing{{0.1, 0.2, 0.3}, {0.4, 0.5, 0.6}, 0.95, Interpolation::kBilinear}));
}

TEST_F(ModelFileTest, ASwinOfAnotherSizeShiftsAccordingly) {
  const ModelSpec large = with_overrides(catalog_spec("swin_mini_32"), {{"img_size", "64"}});
  write("model.safetensors", large, {});
  folder.write("config.json",
               R"({"architecture": "swin_mini_32", "input_size": [3, 64, 64], "std": [1, 1, 1]})");
  EXPECT_EQ(open_model(folder.path()).header.spec, large);
  const ModelFile named = open_model(folder.path(), {"swin_mini_32", {}});
  EXPECT_EQ(named.header.preprocessing.std, (std::vector<double>{1, 1, 1}));
}

TEST_F(ModelFileTest, DefaultPreprocessingFollowsTheImageSize) {
  const std::string path = write("m.safetensors", catalog_spec("deit_tiny_patch16_224"), {});
  const auto crop = [&](const char* size) {
    return open_model(path, {"deit_tiny_patch16_224", {{"img_size", size}}})
        .header.preprocessing.crop_pct;
  };
  EXPECT_EQ(crop("224"), 0.9);
  EXPECT_EQ(crop("384"), 1.0);
}

TEST_F(ModelFileTest, WhatAConfigAsksForAndIsNotDoneIsSaid) {
  write("model.safetensors", spec, {});
  folder.write("config.json", R"({"architecture": "vit_mini_28", "global_pool": "avg",
                                 "pretrained_cfg": {"crop_mode": "squash"}})");
  const ModelFile file = open_model(folder.path());
  EXPECT_EQ(std::get<VitSpec>(file.header.spec.family).pool, PoolKind::kAvg);
  ASSERT_EQ(file.notes.size(), 1U);
  EXPECT_TRUE(contains(file.notes[0], "squash")) << file.notes[0];
}

TEST_F(ModelFileTest, BrokenHubFoldersAreRefusedInASentence) {
  expect_error(ErrorKind::kIo, {"model.safetensors", "pytorch_model.bin"},
               [&] { open_model(folder.path()); });
  write("model.safetensors", spec, {});
  const auto refuse = [&](const std::string& config,
                          std::initializer_list<std::string_view> parts) {
    folder.write("config.json", config);
    expect_error(ErrorKind::kData, parts, [&] { open_model(folder.path()); });
  };
  refuse("{", {"config.json", "not JSON"});
  refuse("[]", {"config.json", "no JSON object"});
  refuse("{}", {"config.json", "architecture"});
  refuse(R"({"architecture": "vit_mini_28", "model_args": {"num_heads": 6}})", {"model_args"});
  refuse(R"({"architecture": "vit_mini_28", "global_pool": "map"})", {"global_pool", "map"});
  refuse(R"({"architecture": "vit_mini_28", "input_size": [1, 28, 35]})", {"config.json", "side"});
  refuse(R"({"architecture": "vit_mini_28", "input_size": [28]})", {"config.json", "input_size"});
  refuse(R"({"architecture": "vit_mini_28", "input_size": [1, 27, 27]})",
         {"config.json", "multiple of patch_size 7"});
  refuse(std::string(5 << 20, ' '), {"config.json", "larger than"});
  refuse(R"({"architectures": ["ViTForImageClassification"]})", {"architecture", "timm"});
  refuse(R"({"architecture": "vit_mini_29"})", {"config.json", "vit_mini_28"});
  refuse(R"({"architecture": "vit_mini_28", "num_classes": -3})", {"num_classes", "-3"});
  refuse(R"({"architecture": "vit_mini_28", "mean": "x"})", {"config.json: mean"});
  refuse(R"({"architecture": "vit_mini_28", "mean": [1, 2, 3], "std": [1, 2, 3]})",
         {"3 means", "1 channels"});
}

TEST_F(ModelFileTest, MetadataIsNotTrusted) {
  const auto refuse = [&](const std::string& key, const std::string& value,
                          std::initializer_list<std::string_view> parts) {
    auto metadata = to_metadata({spec, {}, default_preprocessing(spec), {}});
    metadata[key] = value;
    const std::string path = write("bad.safetensors", spec, metadata);
    expect_error(ErrorKind::kData, parts, [&] { open_model(path); });
  };
  refuse("adjoin.spec", "{", {"bad.safetensors", "adjoin.spec", "not JSON"});
  refuse("adjoin.spec", "{}", {"bad.safetensors", "family"});
  refuse("adjoin.spec", std::string(100000, '['), {"bad.safetensors", "nests deeper"});
  refuse("adjoin.classes", R"(["a"])", {"bad.safetensors", "names 1 classes", "has 10"});
  refuse("adjoin.classes", std::string(200000, '['), {"bad.safetensors"});
  refuse("adjoin.classes", "3", {"bad.safetensors", "adjoin.classes"});
  refuse("adjoin.preprocessing", R"({"mean":[0],"std":[0],"crop_pct":1,"interpolation":"bicubic"})",
         {"bad.safetensors", "std"});
  refuse("adjoin.preprocessing", R"({"mean":[],"std":[],"crop_pct":1,"interpolation":"bicubic"})",
         {"bad.safetensors", "0 means"});
  refuse("adjoin.provenance", "{\"seed\":1e99}", {"bad.safetensors", "adjoin.provenance"});
}

TEST_F(ModelFileTest, WhatCouldNotBeReadIsNotWritten) {
  expect_error(ErrorKind::kData, {"long.safetensors", "needs more memory"}, [&] {
    write("long.safetensors", spec, {{"adjoin.classes", std::string(1 << 20, 'x')}});
  });
  EXPECT_EQ(read_file(folder / "long.safetensors"), "");
}

TEST_F(ModelFileTest, EqualModelsGiveEqualFiles) {
  const auto metadata = to_metadata({spec, {}, default_preprocessing(spec), {}});
  EXPECT_EQ(read_file(write("a.safetensors", spec, metadata)),
            read_file(write("b.safetensors", spec, metadata)));
}

}  // namespace
}  // namespace adjoin::io
