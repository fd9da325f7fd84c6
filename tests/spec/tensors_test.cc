#include "adjoin/spec/tensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "adjoin/spec/catalog.h"
#include "support/random_spec.h"

namespace adjoin {
namespace {

constexpr uint64_t kRandomSpecs = 200;
using Shape = std::vector<int64_t>;

/// The catalog and random specs: what a test says of one it says of all.
std::vector<ModelSpec> many_specs() {
  std::vector<ModelSpec> specs;
  for (const std::string& name : catalog_names()) specs.push_back(catalog_spec(name));
  for (uint64_t seed = 0; seed < kRandomSpecs; ++seed) specs.push_back(random_spec(seed));
  return specs;
}

std::map<std::string, TensorInfo> by_name(const ModelSpec& spec) {
  std::map<std::string, TensorInfo> rows;
  for (TensorInfo& row : tensors(spec)) rows.emplace(row.name, row);
  return rows;
}

std::set<std::string> names_of(const ModelSpec& spec) {
  std::set<std::string> names;
  for (const TensorInfo& row : tensors(spec)) names.insert(row.name);
  return names;
}

bool is_fixed_table(const std::string& name) {
  return name == "cls_token" || name == "dist_token" || name == "pos_embed" ||
         name.ends_with("relative_position_bias_table") ||
         name.find(".rel_pos_embed_") != std::string::npos;
}

TEST(TensorsTest, BearNamesThatStandOnce) {
  for (const ModelSpec& spec : many_specs()) {
    EXPECT_EQ(names_of(spec).size(), tensors(spec).size()) << spec.name;
  }
}

TEST(TensorsTest, HaveAxesWhoseSizesMultiplyToTheirEntries) {
  for (const ModelSpec& spec : many_specs()) {
    for (const TensorInfo& row : tensors(spec)) {
      const Shape shape = row.shape();
      ASSERT_EQ(shape.size(), row.axes.size());
      int64_t entries = 1;
      for (size_t i = 0; i < shape.size(); ++i) {
        const Axis& axis = row.axes[i];
        EXPECT_EQ(shape[i], axis.groups * axis.count * axis.unit) << row.name;
        EXPECT_GE(shape[i], 1) << row.name;
        entries *= shape[i];
      }
      EXPECT_EQ(row.numel(), entries) << row.name;
    }
  }
}

TEST(TensorsTest, OfABlockHaveAxesThatCountItsHeadsHiddenUnitsAndChannels) {
  for (const ModelSpec& spec : many_specs()) {
    const std::vector<PlacedBlock> placed = placed_blocks(spec);
    for (const TensorInfo& row : tensors(spec)) {
      if (row.block < 0) continue;
      const PlacedBlock& owner = placed.at(row.block);
      EXPECT_TRUE(row.name.starts_with(owner.name + ".")) << row.name << " in " << owner.name;
      const bool is_per_head =
          row.name.ends_with("bias_table") || row.name.find(".attn.proj_") != std::string::npos;
      const bool is_in_blocks = row.axes.size() == 4;
      for (const Axis& axis : row.axes) {
        if (axis.kind == AxisKind::kHeads) {
          EXPECT_EQ(axis.count, owner.block->heads) << row.name;
          EXPECT_EQ(axis.unit, is_per_head ? 1 : owner.block->head_dim);
        }
        if (axis.kind == AxisKind::kHidden) {
          EXPECT_EQ(axis.count, owner.block->hidden) << row.name;
        }
        if (axis.kind == AxisKind::kEmbed) {
          const bool is_of_skip = row.name.find(".skip") != std::string::npos;
          const auto shortcut = is_of_skip ? skip_shortcut(owner.embed_dim)
                                           : owner.block->shortcut.value_or(Shortcut{});
          EXPECT_EQ(axis.count, is_in_blocks ? shortcut.blocks : owner.embed_dim) << row.name;
        }
      }
    }
  }
}

TEST(TensorsTest, AreAllOfABlockExactlyWhenTheirNameSaysSo) {
  for (const ModelSpec& spec : many_specs()) {
    std::map<int64_t, int> count;
    for (const TensorInfo& row : tensors(spec)) {
      EXPECT_EQ(row.block >= 0, row.name.find("blocks.") != std::string::npos) << row.name;
      if (row.block >= 0) ++count[row.block];
    }
    const bool is_swin = family_name(spec) == "swin";
    EXPECT_EQ(count.size(), placed_blocks(spec).size()) << spec.name;
    const std::vector<PlacedBlock> placed = placed_blocks(spec);
    for (const auto& [block, tensors_of_it] : count) {
      const BlockSpec& of = *placed[static_cast<size_t>(block)].block;
      int expected = spec.qkv_bias ? 12 : 11;
      if (of.norm == NormPlacement::kResPost) expected += 2;
      if (of.shortcut && of.shortcut->branches > 0) expected += 4;
      if (is_swin && of.mixer.kind == MixerKind::kSoftmax) ++expected;
      if (of.mixer.kind == MixerKind::kRelative) expected += 4;
      if (of.mixer.kind == MixerKind::kLsh) ++expected;
      if (of.mixer.kind == MixerKind::kLinformer) {
        expected += of.mixer.share == ProjectionShare::kKeyValue ? 1 : 2;
      }
      for (const Skip& skip : spec.skips) {
        if (skip.to == block && skip.kind == SkipKind::kCirculant) expected += 2;
      }
      EXPECT_EQ(tensors_of_it, expected) << block;
    }
  }
}

TEST(TensorsTest, DecayWhenTheyAreMatricesOrThePatchConvolutionOnly) {
  for (const ModelSpec& spec : many_specs()) {
    for (const TensorInfo& row : tensors(spec)) {
      const bool is_matrix = row.axes.size() >= 2 && !is_fixed_table(row.name) && row.is_trained;
      EXPECT_EQ(row.has_decay, is_matrix) << spec.name << " " << row.name;
    }
  }
}

TEST(TensorsTest, AreAllTrainedButSinusoidsRandomFeaturesAndHashes) {
  for (const ModelSpec& spec : many_specs()) {
    for (const TensorInfo& row : tensors(spec)) {
      const bool is_fixed =
          row.init.kind == InitKind::kSinusoid ||
          (row.name.starts_with("tokens_to_token.") && row.name.ends_with(".w")) ||
          row.name.ends_with(".rotations");
      EXPECT_EQ(row.is_trained, !is_fixed) << spec.name << " " << row.name;
    }
  }
}

TEST(TensorsTest, StartWithOnesInNormWeightsAndZerosInBiases) {
  for (const ModelSpec& spec : many_specs()) {
    for (const TensorInfo& row : tensors(spec)) {
      if (row.axes.size() != 1 || row.name == "patch_embed.proj.bias") continue;
      if (row.name.ends_with("_shortcut.bias")) continue;
      if (row.name.find(".skip") != std::string::npos) continue;
      EXPECT_EQ(static_cast<int>(row.init.kind),
                static_cast<int>(row.name.ends_with("bias") ? InitKind::kZeros : InitKind::kOnes))
          << row.name;
    }
  }
}

TEST(TensorsTest, StartAsTheAuthorsStartThem) {
  const auto vit = by_name(catalog_spec("deit_tiny_patch16_224"));
  for (const char* name : {"cls_token", "pos_embed", "blocks.3.attn.qkv.weight", "head.weight"}) {
    EXPECT_EQ(vit.at(name).init.kind, InitKind::kNormal) << name;
    EXPECT_EQ(vit.at(name).init.scale, 0.02) << name;
  }
  for (const char* name : {"patch_embed.proj.weight", "patch_embed.proj.bias"}) {
    EXPECT_EQ(vit.at(name).init.kind, InitKind::kUniform) << name;
    EXPECT_DOUBLE_EQ(vit.at(name).init.scale, 1 / std::sqrt(3 * 16 * 16.0)) << name;
  }
  const auto t2t = by_name(catalog_spec("t2t_vit_14"));
  EXPECT_EQ(t2t.at("pos_embed").init.kind, InitKind::kSinusoid);
  EXPECT_EQ(t2t.at("tokens_to_token.attention1.w").init.kind, InitKind::kOrthogonal);
  EXPECT_DOUBLE_EQ(t2t.at("tokens_to_token.attention1.w").init.scale, std::sqrt(32.0));
}

TEST(TensorsTest, OfDeitAreThoseOfItsCheckpoint) {
  const ModelSpec spec = catalog_spec("deit_tiny_patch16_224");
  const auto rows = by_name(spec);
  EXPECT_EQ(rows.size(), 152U);
  EXPECT_EQ(rows.at("cls_token").shape(), (Shape{1, 1, 192}));
  EXPECT_EQ(rows.at("pos_embed").shape(), (Shape{1, 197, 192}));
  EXPECT_EQ(rows.at("patch_embed.proj.weight").shape(), (Shape{192, 3, 16, 16}));
  EXPECT_EQ(rows.at("patch_embed.proj.bias").shape(), (Shape{192}));
  EXPECT_EQ(rows.at("blocks.11.norm1.weight").shape(), (Shape{192}));
  EXPECT_EQ(rows.at("blocks.11.attn.qkv.weight").shape(), (Shape{576, 192}));
  EXPECT_EQ(rows.at("blocks.11.attn.qkv.bias").shape(), (Shape{576}));
  EXPECT_EQ(rows.at("blocks.11.attn.proj.weight").shape(), (Shape{192, 192}));
  EXPECT_EQ(rows.at("blocks.0.mlp.fc1.weight").shape(), (Shape{768, 192}));
  EXPECT_EQ(rows.at("blocks.0.mlp.fc2.weight").shape(), (Shape{192, 768}));
  EXPECT_EQ(rows.at("norm.bias").shape(), (Shape{192}));
  EXPECT_EQ(rows.at("head.weight").shape(), (Shape{1000, 192}));
}

TEST(TensorsTest, OfDistilledDeitAddATokenAHeadAndAPosition) {
  std::set<std::string> names = names_of(catalog_spec("deit_tiny_patch16_224"));
  names.insert({"dist_token", "head_dist.weight", "head_dist.bias"});
  const ModelSpec distilled = catalog_spec("deit_tiny_distilled_patch16_224");
  EXPECT_EQ(names_of(distilled), names);
  EXPECT_EQ(by_name(distilled).at("pos_embed").shape(), (Shape{1, 198, 192}));
}

TEST(TensorsTest, OfT2tHaveTheOfficialNames) {
  const auto performer = by_name(catalog_spec("t2t_vit_14"));
  EXPECT_EQ(performer.at("tokens_to_token.attention1.w").shape(), (Shape{32, 64}));
  EXPECT_EQ(performer.at("tokens_to_token.attention1.kqv.weight").shape(), (Shape{192, 147}));
  EXPECT_EQ(performer.at("tokens_to_token.attention2.kqv.weight").shape(), (Shape{192, 576}));
  EXPECT_TRUE(performer.contains("tokens_to_token.attention2.kqv.bias"));
  EXPECT_EQ(performer.at("tokens_to_token.attention2.mlp.2.weight").shape(), (Shape{64, 64}));
  EXPECT_EQ(performer.at("tokens_to_token.project.weight").shape(), (Shape{384, 576}));
  EXPECT_FALSE(performer.contains("blocks.0.attn.qkv.bias"));
  const auto transformer = by_name(catalog_spec("t2t_vit_t_14"));
  EXPECT_EQ(transformer.at("tokens_to_token.attention1.attn.qkv.weight").shape(),
            (Shape{192, 147}));
  EXPECT_EQ(transformer.at("tokens_to_token.attention2.attn.qkv.weight").shape(),
            (Shape{192, 576}));
  EXPECT_FALSE(transformer.contains("tokens_to_token.attention1.attn.qkv.bias"));
  EXPECT_EQ(transformer.at("tokens_to_token.attention1.mlp.fc1.weight").shape(), (Shape{64, 64}));
}

TEST(TensorsTest, OfSwinHaveTimmsNamesAndMergeAtTheStartOfAStage) {
  const auto rows = by_name(catalog_spec("swin_tiny_patch4_window7_224"));
  EXPECT_EQ(rows.at("patch_embed.proj.weight").shape(), (Shape{96, 3, 4, 4}));
  EXPECT_EQ(rows.at("patch_embed.norm.weight").shape(), (Shape{96}));
  EXPECT_EQ(rows.at("layers.0.blocks.1.attn.relative_position_bias_table").shape(),
            (Shape{169, 3}));
  EXPECT_FALSE(rows.contains("layers.0.downsample.reduction.weight"));
  EXPECT_EQ(rows.at("layers.1.downsample.reduction.weight").shape(), (Shape{192, 384}));
  EXPECT_EQ(rows.at("layers.3.downsample.reduction.weight").shape(), (Shape{768, 1536}));
  EXPECT_EQ(rows.at("layers.3.downsample.norm.bias").shape(), (Shape{1536}));
  EXPECT_FALSE(rows.contains("layers.1.downsample.reduction.bias"));
  EXPECT_EQ(rows.at("head.fc.weight").shape(), (Shape{1000, 768}));
}

TEST(TensorsTest, OfASwinStageWithOneWindowHaveATableOfThatWindow) {
  ModelSpec spec = catalog_spec("swin_mini_28");  // grids 14 and 7
  auto& swin = std::get<SwinSpec>(spec.family);
  swin.window = 14;
  swin.stages[0].blocks[1].shift = 0;
  const auto rows = by_name(spec);
  EXPECT_EQ(rows.at("layers.0.blocks.0.attn.relative_position_bias_table").shape(),
            (Shape{27 * 27, 4}));
  EXPECT_EQ(rows.at("layers.1.blocks.0.attn.relative_position_bias_table").shape(),
            (Shape{13 * 13, 8}));
}

TEST(OfficialNameTest, MovesSwinsMergesToTheStageBefore) {
  const ModelSpec swin = catalog_spec("swin_tiny_patch4_window7_224");
  EXPECT_EQ(official_name(swin, "layers.1.downsample.reduction.weight"),
            "layers.0.downsample.reduction.weight");
  EXPECT_EQ(official_name(swin, "layers.2.downsample.norm.weight"),
            "layers.1.downsample.norm.weight");
  EXPECT_EQ(official_name(swin, "layers.3.downsample.norm.bias"), "layers.2.downsample.norm.bias");
}

TEST(OfficialNameTest, CallsSwinsHeadByItsShortName) {
  const ModelSpec swin = catalog_spec("swin_tiny_patch4_window7_224");
  EXPECT_EQ(official_name(swin, "head.fc.weight"), "head.weight");
  EXPECT_EQ(official_name(swin, "head.fc.bias"), "head.bias");
}

TEST(OfficialNameTest, KeepsEveryOtherNameAndNamesNoTwoTensorsAlike) {
  for (const ModelSpec& spec : many_specs()) {
    std::set<std::string> official;
    for (const std::string& name : names_of(spec)) {
      official.insert(official_name(spec, name));
      const bool is_moved = family_name(spec) == "swin" && (name.starts_with("head.fc.") ||
                                                            name.find(".downsample.") != name.npos);
      EXPECT_EQ(official_name(spec, name) != name, is_moved) << name;
    }
    EXPECT_EQ(official.size(), tensors(spec).size()) << spec.name;
  }
}

}  // namespace
}  // namespace adjoin
