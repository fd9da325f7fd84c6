#include "adjoin/models/load.h"

#include <gtest/gtest.h>

#include <fstream>

#include "adjoin/io/safetensors.h"
#include "adjoin/models/forward.h"
#include "adjoin/models/init.h"
#include "adjoin/models/slice.h"
#include "adjoin/spec/catalog.h"
#include "models/laws.h"
#include "support/expect_error.h"
#include "support/random_choice.h"
#include "support/random_weights.h"
#include "support/seeded_test.h"
#include "support/temp_folder.h"

namespace adjoin::models {
namespace {

io::ModelHeader header_of(const ModelSpec& spec) {
  return {spec, {}, default_preprocessing(spec), {}};
}

class LoadTest : public SeededTest {
 protected:
  TempFolder folder;
};

TEST_F(LoadTest, WhatWasSavedComesBackBitForBitInEveryType) {
  for (const auto type : {torch::kFloat32, torch::kFloat64, torch::kFloat16, torch::kBFloat16}) {
    for (uint64_t seed = 0; seed < 6; ++seed) {
      const ModelSpec spec = random_spec(seed);
      const Weights weights = random_weights(spec, type);
      for (const io::Layout layout : {io::Layout::kTimm, io::Layout::kOfficial}) {
        save(folder / "m.safetensors", header_of(spec), weights, layout);
        const Model model = load(folder / "m.safetensors");
        EXPECT_EQ(model.header.spec, spec);
        ASSERT_EQ(model.weights.size(), weights.size());
        for (const auto& [name, tensor] : weights) {
          EXPECT_EQ(model.weights.at(name).scalar_type(), type);
          EXPECT_TRUE(torch::equal(model.weights.at(name), tensor)) << name;
        }
      }
    }
  }
}

TEST_F(LoadTest, AnExtractedNetworkComputesWhatTheBranchComputes) {
  const torch::NoGradGuard no_grad;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Geometry geometry = seed % 2 == 0 ? Geometry::kKept : Geometry::kNarrow;
    const ModelSpec large = random_divisible_spec(seed, seed % 3, 2);
    const Derived small = derive(large, random_choice(large, geometry, 2, seed), geometry);
    const Weights weights = random_weights(large);
    save(folder / "s.safetensors", header_of(small.spec), copies(small, weights));
    const Model model = load(folder / "s.safetensors");
    const auto images = images_for(large, 2);
    EXPECT_TRUE(torch::equal(forward(model.header.spec, model.weights, images).logits(),
                             forward(small.spec, views(small, weights), images).logits()))
        << large.name;
  }
}

/// Whether an address lies in this process' map of a file.
bool is_mapped(const void* address, const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2 || !line.ends_with(path)) continue;
    const auto place = reinterpret_cast<uintptr_t>(address);
    if (place >= begin && place < end) return true;
  }
  return false;
}

TEST_F(LoadTest, WeightsLieInTheFileAndChangesDoNotReachIt) {
  const ModelSpec spec = catalog_spec("vit_mini_28");
  save(folder / "m.safetensors", header_of(spec), init(spec, 0));
  const std::string before = read_file(folder / "m.safetensors");
  const Model model = load(folder / "m.safetensors");
  for (const auto& [name, tensor] : model.weights) {
    EXPECT_TRUE(is_mapped(tensor.data_ptr(), folder / "m.safetensors")) << name;
  }
  const Weights same = model.weights.to(torch::kCPU, torch::kFloat32);
  EXPECT_EQ(same.at("norm.bias").data_ptr(), model.weights.at("norm.bias").data_ptr());
  model.weights.at("head.weight").fill_(7);
  EXPECT_EQ(read_file(folder / "m.safetensors"), before);
  EXPECT_TRUE(torch::equal(load(folder / "m.safetensors").weights.at("head.weight"),
                           init(spec, 0).at("head.weight")));
}

TEST_F(LoadTest, TheHashNamesTheContentHoweverItLies) {
  Weights weights;
  weights.set("a", torch::arange(16.0).view({4, 4}));
  const std::string hash = content_hash(weights);
  EXPECT_EQ(hash.size(), 6U + 16U);
  weights.set("a", weights.at("a").t().contiguous().t());
  EXPECT_EQ(content_hash(weights), hash);
  weights.set("a", weights.at("a").t());
  EXPECT_NE(content_hash(weights), hash);
}

TEST_F(LoadTest, TensorsOutliveTheModelAndTheFile) {
  const ModelSpec spec = catalog_spec("vit_mini_28");
  save(folder / "m.safetensors", header_of(spec), init(spec, 0));
  const auto tensor = load(folder / "m.safetensors").weights.at("norm.weight");
  std::remove((folder / "m.safetensors").c_str());
  EXPECT_TRUE((tensor == 1).all().item<bool>());
}

TEST_F(LoadTest, AFileWhoseNumbersAreNotAlignedIsReadAsWell) {
  const ModelSpec spec = catalog_spec("vit_mini_28");
  save(folder / "m.safetensors", header_of(spec), init(spec, 0));
  std::string bytes = read_file(folder / "m.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  bytes.insert(8 + length, 3, ' ');
  length += 3;
  std::memcpy(bytes.data(), &length, sizeof length);
  const Model model = load(folder.write("odd.safetensors", bytes));
  for (const auto& [name, tensor] : init(spec, 0)) {
    EXPECT_TRUE(torch::equal(model.weights.at(name), tensor)) << name;
  }
}

TEST_F(LoadTest, AnotherClassCountIsRefusedUnlessTheHeadIsReset) {
  ModelSpec spec = catalog_spec("swin_mini_32");
  spec.num_classes = 37;
  auto header = header_of(spec);
  header.classes.assign(37, "x");
  save(folder / "m.safetensors", header, init(spec, 1));
  LoadOptions options{{"", {{"num_classes", "10"}}}};
  expect_error(
      ErrorKind::kData,
      {"head.fc.weight is (37, 128), must be (10, 128)", "--reset-head", "model.num_classes=37"},
      [&] { load(folder / "m.safetensors", options); });
  options.is_head_reset = true;
  save(folder / "half.safetensors", header, init(spec, 1).to(torch::kCPU, torch::kBFloat16));
  EXPECT_EQ(load(folder / "half.safetensors", options).weights.at("head.fc.bias").scalar_type(),
            torch::kBFloat16);
  const Model model = load(folder / "m.safetensors", options);
  EXPECT_EQ(model.weights.at("head.fc.weight").size(0), 10);
  EXPECT_TRUE(torch::equal(model.weights.at("norm.weight"), init(spec, 1).at("norm.weight")));
  EXPECT_TRUE(model.header.classes.empty());
  EXPECT_EQ(model.notes.size(), 2U);
}

TEST_F(LoadTest, TensorsThatDoNotFitAreRefusedByName) {
  const ModelSpec spec = catalog_spec("vit_mini_28");
  const auto entry = [](const std::string& name, const torch::Tensor& tensor) {
    return io::TensorToWrite{name,
                             io::Dtype::kF32,
                             tensor.sizes().vec(),
                             {static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes()}};
  };
  Weights weights = init(spec, 0);
  weights.erase("blocks.2.mlp.fc1.bias");
  weights.set("stranger", torch::zeros(3));
  weights.set("norm.bias", torch::zeros(5));
  std::vector<io::TensorToWrite> entries;
  for (const auto& [name, tensor] : weights) entries.push_back(entry(name, tensor));
  io::write_safetensors(folder / "m.safetensors", entries, io::to_metadata(header_of(spec)));
  for (const bool is_head_reset : {false, true}) {
    expect_error(
        ErrorKind::kData,
        {"does not fit vit_mini_28", "missing (blocks.2.mlp.fc1.bias)", "unexpected (stranger)",
         "norm.bias is (5), must be (64)"},
        [&] { load(folder / "m.safetensors", {.open = {}, .is_head_reset = is_head_reset}); });
  }
}

TEST_F(LoadTest, AnotherImageSizeOrWindowInterpolatesPositions) {
  const ModelSpec vit = catalog_spec("vit_mini_32");
  save(folder / "v.safetensors", header_of(vit), init(vit, 0));
  const Model larger = load(folder / "v.safetensors", {{"", {{"img_size", "48"}}}});
  EXPECT_EQ(larger.weights.at("pos_embed").size(1), 1 + 144);
  EXPECT_TRUE(torch::equal(larger.weights.at("pos_embed").select(1, 0),
                           init(vit, 0).at("pos_embed").select(1, 0)));
  ASSERT_EQ(larger.notes.size(), 1U);
  EXPECT_TRUE(contains(larger.notes[0], "pos_embed is interpolated from 8x8 to 12x12"));
  const auto logits = forward(larger.header.spec, larger.weights, torch::randn({1, 3, 48, 48}));
  EXPECT_TRUE(logits.logits().isfinite().all().item<bool>());

  const ModelSpec swin = catalog_spec("swin_mini_32");
  save(folder / "s.safetensors", header_of(swin), init(swin, 0));
  const Model wider = load(folder / "s.safetensors", {{"", {{"window", "8"}}}});
  EXPECT_EQ(wider.weights.at("layers.0.blocks.1.attn.relative_position_bias_table").size(0), 225);
  EXPECT_EQ(wider.notes.size(), 6U);
  const std::string table = "layers.1.blocks.0.attn.relative_position_bias_table";
  EXPECT_TRUE(torch::equal(wider.weights.at(table), resized_grid(init(swin, 0).at(table), 7, 15)));
}

TEST(InterpolationTest, AgreesWithTheAuthorsCode) {
  const Json golden = read_json_file(std::string(ADJOIN_GOLDEN_DIR) + "/interpolation.json");
  const auto tensor_of = [](const Json& json) {
    return torch::tensor(json["values"].get<std::vector<double>>(), torch::kFloat64)
        .view(json["shape"].get<std::vector<int64_t>>());
  };
  ASSERT_EQ(golden["cases"].size(), 6U);
  for (const Json& entry : golden["cases"]) {
    const auto input = tensor_of(entry["input"]).flatten(0, -2);
    const auto wanted = tensor_of(entry["output"]).flatten(0, -2);
    const auto prefix = entry.value("prefix", int64_t{0});
    const auto side = [&](const torch::Tensor& tensor) {
      return static_cast<int64_t>(std::sqrt(static_cast<double>(tensor.size(0) - prefix)));
    };
    const int64_t from = side(input);
    const auto ours = resized_grid(input.narrow(0, prefix, from * from), from, side(wanted));
    EXPECT_LT((ours - wanted.narrow(0, prefix, ours.size(0))).abs().max().item<double>(), 1e-12);
  }
}

TEST_F(LoadTest, AnotherMixerKeepsWhatItCanAndListsWhatIsNew) {
  const ModelSpec spec = catalog_spec("vit_mini_28");
  const Weights weights = init(spec, 3);
  save(folder / "v.safetensors", {spec, {}, default_preprocessing(spec), {}}, weights);
  LoadOptions options;
  options.open.overrides = {{"mixer", "linformer"}, {"norm", "res-post"}, {"shortcut", "dense"}};
  expect_error(ErrorKind::kData, {"missing", "blocks.0-3.attn.proj_k", "adjoin convert"},
               [&] { load(folder / "v.safetensors", options); });
  options.is_mixer_reset = true;
  const Model model = load(folder / "v.safetensors", options);
  EXPECT_TRUE(torch::equal(model.weights.at("blocks.1.attn.qkv.weight"),
                           weights.at("blocks.1.attn.qkv.weight")));
  EXPECT_EQ(model.weights.size(), tensors(model.header.spec).size());
  ASSERT_EQ(model.notes.size(), 1U);
  EXPECT_NE(model.notes[0].find("tensors that start anew (32)"), std::string::npos)
      << model.notes[0];
  EXPECT_NE(model.notes[0].find("blocks.0-3.norm3.weight"), std::string::npos);
}

TEST_F(LoadTest, QueriesAndValuesStayWhenKeysAreSharedAndComeBack) {
  const ModelSpec spec = catalog_spec("vit_mini_28");
  const Weights weights = init(spec, 3);
  save(folder / "v.safetensors", {spec, {}, default_preprocessing(spec), {}}, weights);
  LoadOptions options;
  options.is_mixer_reset = true;
  options.open.overrides = {{"blocks.2.mixer", "lsh"}};
  const Model shared = load(folder / "v.safetensors", options);
  const auto& whole = weights.at("blocks.2.attn.qkv.weight");
  const auto thirds = whole.chunk(3, 0);
  EXPECT_TRUE(torch::equal(shared.weights.at("blocks.2.attn.qv.weight"),
                           torch::cat({thirds[0], thirds[2]})));
  EXPECT_EQ(shared.notes.size(), 3U) << "put together, anew, left out";
  save(folder / "s.safetensors", shared.header, shared.weights);
  options.open.overrides = {{"blocks.2.mixer", "softmax"}};
  const Model back = load(folder / "s.safetensors", options);
  EXPECT_TRUE(torch::equal(back.weights.at("blocks.2.attn.qkv.weight"),
                           torch::cat({thirds[0], thirds[0], thirds[2]})));
  EXPECT_EQ(back.header.spec, spec);
}

TEST_F(LoadTest, DamagedProjectionsAreNeverMadeUp) {
  const ModelSpec spec = catalog_spec("vit_mini_28");
  LoadOptions options;
  options.is_mixer_reset = true;
  const auto refused = [&](const std::vector<Override>& changes, const torch::Tensor& qkv) {
    options.open.overrides = changes;
    NamedTensors named;
    for (const auto& [name, tensor] : init(spec, 3)) {
      if (name != "blocks.2.attn.qkv.weight") named.emplace_back(name, tensor);
    }
    if (qkv.defined()) named.emplace_back("blocks.2.attn.qkv.weight", qkv);
    save_tensors(folder / "v.safetensors", named, io::to_metadata(header_of(spec)));
    expect_error(ErrorKind::kData, {"does not fit"},
                 [&] { load(folder / "v.safetensors", options); });
  };
  for (const char* mixer : {"softmax", "lsh", "linear"}) {
    const std::vector<Override> changes = {{"mixer", mixer}};
    refused(changes, {});
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1}, {4}, {}}) {
      refused(changes, torch::zeros(shape));
    }
    refused(changes, torch::zeros({192, 64}, torch::kInt64));
  }
}

}  // namespace
}  // namespace adjoin::models
