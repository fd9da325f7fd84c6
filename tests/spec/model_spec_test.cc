#include "adjoin/spec/model_spec.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "adjoin/spec/catalog.h"
#include "adjoin/spec/named.h"
#include "support/expect_error.h"
#include "support/random_spec.h"

namespace adjoin {
namespace {

constexpr uint64_t kRandomSpecs = 200;

ModelSpec mini_vit() { return catalog_spec("vit_mini_28"); }
ModelSpec mini_t2t() { return catalog_spec("t2t_mini_28"); }
ModelSpec mini_swin() { return catalog_spec("swin_mini_28"); }

void expect_invalid(const ModelSpec& spec, std::initializer_list<std::string_view> parts) {
  expect_error(ErrorKind::kConfig, parts, [&] { validate(spec); });
}

std::vector<std::string> keys_of(const Json& json) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

/// The pointer of every member of every object inside.
void collect_members(const Json& json, const Json::json_pointer& at,
                     std::vector<Json::json_pointer>& members) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      members.push_back(at / key);
      collect_members(value, at / key, members);
    }
  } else if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) collect_members(json[i], at / i, members);
  }
}

std::vector<Json::json_pointer> members_of(const Json& json) {
  std::vector<Json::json_pointer> members;
  collect_members(json, Json::json_pointer(), members);
  return members;
}

std::vector<ModelSpec> one_of_each_family() { return {mini_vit(), mini_t2t(), mini_swin()}; }

TEST(SpecJsonTest, ReadsBackEqualForTheWholeCatalog) {
  for (const std::string& name : catalog_names()) {
    const ModelSpec spec = catalog_spec(name);
    const std::string text = spec_to_json(spec).dump();
    EXPECT_EQ(spec_from_json(parse_json(text, name)), spec) << name;
  }
}

TEST(SpecJsonTest, ReadsBackEqualForRandomSpecs) {
  for (uint64_t seed = 0; seed < kRandomSpecs; ++seed) {
    const ModelSpec spec = random_spec(seed);
    const std::string text = spec_to_json(spec).dump();
    EXPECT_EQ(spec_from_json(parse_json(text, spec.name)), spec) << text;
  }
}

TEST(SpecJsonTest, IsTheDocumentedTextForAVit) {
  const char* text = R"({"version": 1, "family": "vit", "name": "x", "img_size": 32,
    "patch_size": 16, "in_chans": 3, "num_classes": 10, "embed_dim": 12, "pool": "token",
    "distilled": false, "qkv_bias": true, "norm_eps": 1e-6, "pos_embed": "learned",
    "blocks": [
      {"origin": 0, "heads": 3, "head_dim": 4, "hidden": 48, "norm": "pre",
       "mixer": {"kind": "softmax"}, "shortcut": null, "drop_path": 0.0},
      {"origin": 4, "heads": 1, "head_dim": 5, "hidden": 7, "norm": "pre",
       "mixer": {"kind": "softmax"}, "shortcut": null, "drop_path": 0.25},
      {"origin": 5, "heads": 1, "head_dim": 4, "hidden": 1, "norm": "pre",
       "mixer": {"kind": "softmax"}, "shortcut": null, "drop_path": 0}],
    "skips": [{"from": 0, "to": 2, "kind": "identity"}]})";
  const ModelSpec spec = spec_from_json(Json::parse(text));
  const auto& vit = std::get<VitSpec>(spec.family);
  EXPECT_EQ(spec.img_size, 32);
  EXPECT_EQ(vit.patch_size, 16);
  ASSERT_EQ(vit.blocks.size(), 3U);
  EXPECT_EQ(vit.blocks[1].origin, 4);
  EXPECT_EQ(vit.blocks[1].attention_dim(), 5);
  EXPECT_EQ(vit.blocks[1].drop_path, 0.25);
  EXPECT_EQ(spec.skips, (std::vector<Skip>{{0, 2}}));
  EXPECT_EQ(nlohmann::json::parse(spec_to_json(spec).dump()), nlohmann::json::parse(text));
}

TEST(SpecJsonTest, HasTheDocumentedFieldsOfT2tAndSwin) {
  const Json tokens = spec_to_json(mini_t2t()).at("tokens");
  EXPECT_EQ(keys_of(tokens), (std::vector<std::string>{"kind", "splits", "dim"}));
  EXPECT_EQ(keys_of(tokens["splits"][0]),
            (std::vector<std::string>{"kernel", "stride", "padding"}));
  const Json swin = spec_to_json(mini_swin());
  EXPECT_EQ(swin.at("window"), 7);
  EXPECT_EQ(keys_of(swin.at("stages")[0]), (std::vector<std::string>{"embed_dim", "blocks"}));
  EXPECT_EQ(swin["stages"][0]["blocks"][1].at("shift"), 3);
}

TEST(SpecJsonTest, IsRefusedWithoutAnyOneOfItsFields) {
  for (const ModelSpec& spec : one_of_each_family()) {
    const Json whole = spec_to_json(spec);
    for (const Json::json_pointer& member : members_of(whole)) {
      SCOPED_TRACE(member.to_string());
      Json json = whole;
      json.at(member.parent_pointer()).erase(member.back());
      expect_error(ErrorKind::kConfig, {"field \"" + member.back() + "\" is missing"},
                   [&] { spec_from_json(json); });
    }
  }
}

TEST(SpecJsonTest, IsRefusedWithAnyOneFieldOfAnotherType) {
  for (const ModelSpec& spec : one_of_each_family()) {
    const Json whole = spec_to_json(spec);
    for (const Json::json_pointer& member : members_of(whole)) {
      SCOPED_TRACE(member.to_string());
      Json json = whole;
      Json& value = json.at(member);
      value = value.is_string() ? Json(5) : value.is_structured() ? Json(true) : Json("word");
      expect_error(ErrorKind::kConfig, {member.back() + ": is ", "must be"},
                   [&] { spec_from_json(json); });
    }
  }
}

TEST(SpecJsonTest, IsRefusedWithAFieldTooManyInAnyObject) {
  for (const ModelSpec& spec : one_of_each_family()) {
    const Json whole = spec_to_json(spec);
    std::vector<Json::json_pointer> places = members_of(whole);
    places.emplace_back();
    for (const Json::json_pointer& place : places) {
      if (!whole.at(place).is_object()) continue;
      SCOPED_TRACE(place.to_string());
      Json json = whole;
      json.at(place)["surprise"] = 1;
      expect_error(ErrorKind::kConfig, {"unknown field \"surprise\""},
                   [&] { spec_from_json(json); });
    }
  }
}

TEST(SpecJsonTest, NamesTheFamiliesWhenItsOwnIsUnknown) {
  Json json = spec_to_json(mini_vit());
  json["family"] = "resnet";
  expect_error(ErrorKind::kConfig, {"model.family", "\"resnet\"", "vit, t2t, swin"},
               [&] { spec_from_json(json); });
}

TEST(SpecJsonTest, IsRefusedInAnotherVersion) {
  Json json = spec_to_json(mini_vit());
  json["version"] = 2;
  expect_error(ErrorKind::kConfig, {"model.version: is 2, must be 1"},
               [&] { spec_from_json(json); });
}

TEST(SpecJsonTest, IsRefusedWhenItIsNoObject) {
  for (const char* text : {"[]", "null", "3", "\"vit\""}) {
    expect_error(ErrorKind::kConfig, {"model: is", "must be an object"},
                 [&] { spec_from_json(Json::parse(text)); });
  }
}

TEST(ValidateTest, AcceptsRandomSpecs) {
  for (uint64_t seed = 0; seed < 10 * kRandomSpecs; ++seed) {
    const ModelSpec spec = random_spec(seed);
    EXPECT_NO_THROW(validate(spec)) << spec_to_json(spec).dump();
  }
}

TEST(ValidateTest, WantsABlock) {
  ModelSpec spec = mini_vit();
  std::get<VitSpec>(spec.family).blocks.clear();
  expect_invalid(spec, {"model.blocks: has 0 blocks, must have 1 to 1024"});
  spec = mini_swin();
  for (SwinStage& stage : std::get<SwinSpec>(spec.family).stages) stage.blocks.clear();
  expect_invalid(spec, {"has 0 blocks"});
}

TEST(ValidateTest, RefusesZerosSetInCodeAsItDoesInAFile) {
  ModelSpec spec = mini_vit();
  std::get<VitSpec>(spec.family).blocks[2].heads = 0;
  expect_invalid(spec, {"model.blocks.2.heads: is 0, must be 1 to 1024"});
  spec = mini_vit();
  std::get<VitSpec>(spec.family).patch_size = 0;
  expect_invalid(spec, {"model.patch_size: is 0"});
  spec = mini_swin();
  std::get<SwinSpec>(spec.family).window = 0;
  expect_invalid(spec, {"model.window: is 0"});
}

TEST(ValidateTest, WantsOriginsThatRise) {
  ModelSpec spec = mini_vit();
  std::get<VitSpec>(spec.family).blocks[2].origin = 1;
  expect_invalid(spec, {"model.blocks.2.origin: is 1, must be above", "1"});
}

TEST(ValidateTest, BoundsTheWidthOfAttention) {
  ModelSpec spec = mini_vit();
  auto& block = std::get<VitSpec>(spec.family).blocks[1];
  block.heads = 1024;
  block.head_dim = 16;
  EXPECT_NO_THROW(validate(spec));
  block.head_dim = 17;
  expect_invalid(spec, {"model.blocks.1", "heads 1024 x head_dim 17", "16384"});
}

TEST(ValidateTest, WantsAnImageOfWholePatchesAndSaysWhichAreLegal) {
  ModelSpec spec = mini_vit();
  spec.img_size = 30;
  expect_invalid(spec, {"model.img_size: 30", "patch_size 7", "28 or 35"});
  spec.img_size = 3;
  expect_invalid(spec, {"model.img_size: 3", "nearest legal: 7"});
}

TEST(ValidateTest, BoundsTheTokens) {
  ModelSpec spec = mini_vit();
  spec.img_size = 512;
  std::get<VitSpec>(spec.family).patch_size = 1;
  EXPECT_NO_THROW(validate(spec));
  spec.img_size = 513;
  expect_invalid(spec, {"263169 tokens", "262144"});
}

TEST(ValidateTest, WantsSkipsThatGoForwardOnceBetweenBlocksOfOneShape) {
  ModelSpec spec = mini_swin();  // stage 0 has blocks 0 and 1, stage 1 has 2 to 5
  spec.skips = {{0, 1}, {2, 4}, {2, 5}};
  EXPECT_NO_THROW(validate(spec));
  spec.skips = {{1, 2}};
  expect_invalid(spec, {"model.skips: 1 -> 2", "different shape"});
  spec.skips = {{3, 3}};
  expect_invalid(spec, {"3 -> 3", "forward", "0 to 5"});
  spec.skips = {{4, 3}};
  expect_invalid(spec, {"4 -> 3", "forward"});
  spec.skips = {{2, 6}};
  expect_invalid(spec, {"2 -> 6", "0 to 5"});
  spec.skips = {{2, 4}, {2, 4}};
  expect_invalid(spec, {"2 -> 4", "twice"});
}

TEST(ValidateTest, WantsSplitsNoWiderThanTheirGrid) {
  ModelSpec spec = mini_t2t();  // 28 -> 14 -> 7
  auto& splits = std::get<T2tSpec>(spec.family).tokens.splits;
  splits[1] = {16, 1, 1};
  EXPECT_NO_THROW(validate(spec));
  EXPECT_EQ(placed_blocks(spec).front().tokens, 2);
  splits[1] = {17, 1, 1};
  expect_invalid(spec, {"model.tokens.splits.1: kernel 17", "14x14", "up to 16"});
  splits.clear();
  expect_invalid(spec, {"model.tokens.splits: has 0, must have 1 to 8"});
}

TEST(ValidateTest, WantsWindowsThatDivideTheGridAndSaysWhichSizesAreLegal) {
  ModelSpec spec = catalog_spec("swin_tiny_patch4_window7_224");
  spec.img_size = 256;
  expect_invalid(spec, {"model.img_size: 256", "window 7", "64x64 grid of stage 0", "224 or 448",
                        "legal windows at 256: 2, 4, 8"});
  spec.img_size = 226;
  expect_invalid(spec, {"226 is not a multiple of patch_size 4", "224"});
}

TEST(ValidateTest, WantsGridsThatCanBeHalved) {
  ModelSpec spec = mini_swin();
  spec.img_size = 14;
  EXPECT_EQ(stage_grid(spec, std::get<SwinSpec>(spec.family), 0), 7);
  expect_invalid(spec, {"7x7 grid of stage 0 cannot be halved"});
}

TEST(ValidateTest, WantsShiftsBelowTheWindowAndNoneWhereOneWindowIsTheGrid) {
  ModelSpec spec = mini_swin();  // grids 14 and 7, window 7
  auto& stages = std::get<SwinSpec>(spec.family).stages;
  stages[0].blocks[0].shift = 6;
  EXPECT_NO_THROW(validate(spec));
  stages[0].blocks[0].shift = 7;
  expect_invalid(spec, {"model.stages.0.blocks.0.shift", "7", "6"});
  stages[0].blocks[0].shift = 0;
  stages[1].blocks[3].shift = 1;
  expect_invalid(spec, {"model.stages.1.blocks.3.shift", "0"});
}

TEST(PlacedBlocksTest, CountTheTokensThatEnterThem) {
  const auto last_tokens = [](std::string_view name) {
    const ModelSpec spec = catalog_spec(name);
    return placed_blocks(spec).back().tokens;
  };
  EXPECT_EQ(last_tokens("deit_tiny_patch16_224"), 197);
  EXPECT_EQ(last_tokens("deit_tiny_distilled_patch16_224"), 198);
  EXPECT_EQ(last_tokens("t2t_vit_14"), 197);
}

TEST(PlacedBlocksTest, NameTheBlocksOfASwinByStageAndGiveTheirWindows) {
  const ModelSpec spec = catalog_spec("swin_tiny_patch4_window7_224");
  const auto placed = placed_blocks(spec);
  ASSERT_EQ(placed.size(), 12U);
  EXPECT_EQ(placed[5].name, "layers.2.blocks.1");
  EXPECT_EQ(placed[5].embed_dim, 384);
  EXPECT_EQ(placed[5].tokens, 196);
  EXPECT_EQ(placed[5].window, (Window{14, 7, 3}));
  EXPECT_EQ(placed[5].window->count(), 4);
  EXPECT_EQ(placed[11].window, (Window{7, 7, 0}));
}

TEST(SpecFileTest, IsReadAndItsErrorsAreErrorsOfTheFile) {
  const std::string path = testing::TempDir() + "adjoin_spec_file_test.json";
  std::ofstream(path) << spec_to_json(mini_swin()).dump(1);
  EXPECT_EQ(named_spec(path), mini_swin());
  std::ofstream(path) << R"({"family": "vit"})";
  expect_error(ErrorKind::kData, {path + ": model: field"}, [&] { named_spec(path); });
  std::filesystem::remove(path);
  expect_error(ErrorKind::kIo, {path}, [&] { named_spec(path); });
}

}  // namespace
}  // namespace adjoin
