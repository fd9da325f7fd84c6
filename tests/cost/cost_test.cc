#include "adjoin/cost/cost.h"

#include <gtest/gtest.h>

#include <cmath>

#include "adjoin/spec/catalog.h"
#include "adjoin/spec/overrides.h"
#include "support/random_spec.h"

namespace adjoin {
namespace {

constexpr uint64_t kRandomSpecs = 200;

/// A row of the tables of published counts, MACs in units of 1e9 to the digits counted there.
struct Published {
  const char* model;
  int64_t params;
  double giga_macs;
  double half_digit;
};

constexpr Published kPublished[] = {
    {"deit_tiny_patch16_224", 5717416, 1.254, 5e-4},
    {"deit_small_patch16_224", 22050664, 4.599, 5e-4},
    {"deit_base_patch16_224", 86567656, 17.564, 5e-4},
    {"vit_tiny_patch16_224", 5717416, 1.254, 5e-4},
    {"vit_small_patch16_224", 22050664, 4.599, 5e-4},
    {"vit_base_patch16_224", 86567656, 17.564, 5e-4},
    {"deit_tiny_distilled_patch16_224", 5910800, 1.261, 5e-4},
    {"deit_small_distilled_patch16_224", 22436432, 4.624, 5e-4},
    {"deit_base_distilled_patch16_224", 87338192, 17.657, 5e-4},
    {"vit_large_patch16_224", 304326632, 61.555, 5e-4},
    {"t2t_vit_7", 4310222, 1.147, 5e-4},
    {"t2t_vit_10", 5889230, 1.516, 5e-4},
    {"t2t_vit_12", 6941902, 1.763, 5e-4},
    {"t2t_vit_14", 21545550, 4.783, 5e-4},
    {"t2t_vit_19", 39177422, 8.480, 5e-4},
    {"t2t_vit_24", 64105934, 13.662, 5e-4},
    {"swin_tiny_patch4_window7_224", 28288354, 4.4906, 5e-5},
    {"swin_small_patch4_window7_224", 49606258, 8.7409, 5e-5},
    {"swin_base_patch4_window7_224", 87768224, 15.4309, 5e-5},
    {"swin_large_patch4_window7_224", 196532476, 34.4758, 5e-5},
    {"swin_base_patch4_window12_384", 87903584, 47.083, 5e-4},
};

double giga(int64_t macs) { return static_cast<double>(macs) / 1e9; }

class PublishedCostTest : public testing::TestWithParam<Published> {};

TEST_P(PublishedCostTest, IsCountedToTheLastDigit) {
  const Cost counted = cost(catalog_spec(GetParam().model));
  EXPECT_EQ(counted.params, GetParam().params);
  EXPECT_NEAR(giga(counted.macs.total()), GetParam().giga_macs, GetParam().half_digit);
}

INSTANTIATE_TEST_SUITE_P(Models, PublishedCostTest, testing::ValuesIn(kPublished),
                         [](const auto& p) { return std::string(p.param.model); });

TEST(CostTest, CountsTheTrainableParametersOfT2tApart) {
  EXPECT_EQ(cost(catalog_spec("t2t_vit_7")).params_trainable, 4255694);
  EXPECT_EQ(cost(catalog_spec("t2t_vit_14")).params_trainable, 21465806);
  EXPECT_EQ(cost(catalog_spec("t2t_vit_19")).params_trainable, 39085070);
  EXPECT_EQ(cost(catalog_spec("t2t_vit_24")).params_trainable, 64000974);
}

TEST(CostTest, CountsEveryParameterOfVitAndSwinAsTrainable) {
  for (const char* name : {"deit_tiny_distilled_patch16_224", "swin_tiny_patch4_window7_224"}) {
    const Cost counted = cost(catalog_spec(name));
    EXPECT_EQ(counted.params_trainable, counted.params);
  }
}

TEST(CostTest, CountsT2tWithTransformerTokenLayers) {
  for (const auto& [name, giga_macs] :
       {std::pair("t2t_vit_7", 2.452), std::pair("t2t_vit_14", 6.089),
        std::pair("t2t_vit_19", 9.785), std::pair("t2t_vit_24", 14.967)}) {
    ModelSpec spec = catalog_spec(name);
    std::get<T2tSpec>(spec.family).tokens.kind = TokensKind::kTransformer;
    EXPECT_NEAR(giga(cost(spec).macs.total()), giga_macs, 5e-4) << name;
  }
  EXPECT_NEAR(giga(cost(catalog_spec("t2t_vit_t_14")).macs.total()), 6.089, 5e-4);
  EXPECT_NEAR(giga(cost(catalog_spec("t2t_vit_t_19")).macs.total()), 9.785, 5e-4);
  EXPECT_NEAR(giga(cost(catalog_spec("t2t_vit_t_24")).macs.total()), 14.967, 5e-4);
}

TEST(CostTest, SplitsT2tIntoItsTokenModuleAndItsBlocks) {
  int64_t module = 0;
  int64_t blocks = 0;
  for (const Op& op : ops(catalog_spec("t2t_vit_14"))) {
    if (op.name.starts_with("tokens_to_token")) module += macs(op).total();
    if (op.block >= 0) blocks += macs(op).total();
  }
  EXPECT_NEAR(giga(module), 0.299, 5e-4);
  EXPECT_NEAR(giga(blocks), 4.484, 5e-4);
}

TEST(CostTest, CountsAPerformerLayerByItsParts) {
  const Op op{"", PerformerOp{"w", 64, 32, 1e-8}, {0}, {3136, 64}};
  const Macs counted = macs(op);
  EXPECT_EQ(counted.performer_features, 2 * 3136 * 64 * 32);
  EXPECT_EQ(counted.performer_kv, 3136 * 64 * 32);
  EXPECT_EQ(counted.performer_q_kv, 3136 * 64 * 32);
  EXPECT_EQ(counted.performer_norm, 3136 * 32);
  EXPECT_EQ(counted.without_attention(), 0);
  EXPECT_EQ(counted.total(), 4 * 3136 * 64 * 32 + 3136 * 32);
}

BlockSpec block_of(int64_t origin, int64_t heads, int64_t head_dim, int64_t hidden) {
  BlockSpec block;
  block.origin = origin;
  block.heads = heads;
  block.head_dim = head_dim;
  block.hidden = hidden;
  return block;
}

/// One block and nothing that would hide a wrong factor: 4 patches and a class token of 4 channels.
ModelSpec hand_counted() {
  VitSpec vit;
  vit.patch_size = 2;
  vit.embed_dim = 4;
  vit.blocks = {block_of(0, 3, 2, 5)};
  ModelSpec spec;
  spec.name = "hand";
  spec.img_size = 4;
  spec.in_chans = 1;
  spec.num_classes = 2;
  spec.family = vit;
  return spec;
}

TEST(CostTest, OfATinyNetworkIsWhatAHandCounts) {
  const Cost counted = cost(hand_counted());
  const int64_t block = (4 + 4) + (18 * 4 + 18) + (4 * 6 + 4) + (4 + 4) + (5 * 4 + 5) + (4 * 5 + 4);
  EXPECT_EQ(counted.params, 4 + 5 * 4 + (4 * 4 + 4) + block + (4 + 4) + (2 * 4 + 2));
  EXPECT_EQ(counted.macs.conv, 4 * 4 * 4);
  EXPECT_EQ(counted.macs.linear, 5 * (4 * 18 + 6 * 4 + 4 * 5 + 5 * 4) + 4 * 2);
  EXPECT_EQ(counted.macs.attention_qk, 5 * 5 * 6);
  EXPECT_EQ(counted.macs.attention_av, 5 * 5 * 6);
  EXPECT_EQ(counted.macs.total(), counted.macs.without_attention() + 2 * 5 * 5 * 6);
  EXPECT_EQ(counted.weight_bytes, 4 * counted.params);
  ASSERT_EQ(counted.blocks.size(), 1U);
  EXPECT_EQ(counted.blocks[0].params, block);
  EXPECT_EQ(counted.blocks[0].heads, 3);
  EXPECT_EQ(counted.blocks[0].hidden, 5);
  EXPECT_EQ(counted.blocks[0].name, "blocks.0");
}

TEST(CostTest, CountsTheBytesOfEveryValueAnImageMakes) {
  const int64_t stem = 4 * 4 + 5 * 4 + 5 * 4;  // patches, tokens, positions
  const int64_t attention =
      5 * 4 + 5 * 18 + (5 * 6 + 3 * 5 * 5) + 5 * 4 + 5 * 4;  // with its matrices
  const int64_t mlp = 5 * 4 + 5 * 5 + 5 * 5 + 5 * 4 + 5 * 4;
  const int64_t head = 5 * 4 + 4 + 2;
  EXPECT_EQ(cost(hand_counted()).activation_bytes, 4 * (stem + attention + mlp + head));
}

TEST(CostTest, OfAVitFollowsTheFormulaWhateverItsBlocks) {
  for (uint64_t seed = 0; seed < 3 * kRandomSpecs; seed += 3) {
    const ModelSpec spec = random_plain_spec(seed);
    const auto& vit = std::get<VitSpec>(spec.family);
    const int64_t side = spec.img_size / vit.patch_size;
    const int64_t e = vit.embed_dim;
    const int64_t t = side * side + (vit.distilled ? 2 : 1);
    int64_t expected = side * side * spec.in_chans * vit.patch_size * vit.patch_size * e;
    for (const BlockSpec& block : vit.blocks) {
      const int64_t a = block.heads * block.head_dim;
      expected += t * (4 * e * a + 2 * e * block.hidden) + 2 * t * t * a;
      if (block.mixer.kind == MixerKind::kRelative) {  // keys and values, by row and by column
        expected += 4 * side * side * (side + 1) * a;
      }
    }
    expected += (vit.distilled ? 2 : 1) * e * spec.num_classes;
    EXPECT_EQ(cost(spec).macs.total(), expected) << spec.name;
  }
}

TEST(CostTest, OfASwinFollowsTheFormulaWhateverItsStages) {
  for (uint64_t seed = 2; seed < 3 * kRandomSpecs; seed += 3) {
    const ModelSpec spec = random_plain_spec(seed);
    const auto& swin = std::get<SwinSpec>(spec.family);
    int64_t grid = spec.img_size / swin.patch_size;
    int64_t before = spec.in_chans * swin.patch_size * swin.patch_size;
    int64_t expected = 0;
    for (size_t s = 0; s < swin.stages.size(); ++s) {
      const int64_t e = swin.stages[s].embed_dim;
      if (s > 0) grid /= 2;
      expected += grid * grid * (s > 0 ? 4 : 1) * before * e;
      const int64_t window = std::min(grid, swin.window);
      for (const SwinBlockSpec& block : swin.stages[s].blocks) {
        const int64_t a = block.heads * block.head_dim;
        expected += grid * grid * (4 * e * a + 2 * e * block.hidden + 2 * window * window * a);
      }
      before = e;
    }
    EXPECT_EQ(cost(spec).macs.total(), expected + before * spec.num_classes) << spec.name;
  }
}

TEST(CostTest, OfAllBlocksAndTheRestIsTheWhole) {
  for (uint64_t seed = 0; seed < kRandomSpecs; ++seed) {
    const ModelSpec spec = random_spec(seed);
    const Cost counted = cost(spec);
    int64_t params = 0;
    int64_t total = 0;
    for (const BlockCost& block : counted.blocks) {
      EXPECT_GT(block.params, 0);
      EXPECT_GT(block.macs, 0);
      params += block.params;
      total += block.macs;
    }
    for (const TensorInfo& row : tensors(spec)) params += row.block < 0 ? row.numel() : 0;
    for (const Op& op : ops(spec)) total += op.block < 0 ? macs(op).total() : 0;
    EXPECT_EQ(counted.params, params) << spec.name;
    EXPECT_EQ(counted.macs.total(), total) << spec.name;
  }
}

TEST(CostTest, IsNotChangedByAnIdentitySkipButForTheSumItHolds) {
  const ModelSpec plain = catalog_spec("vit_mini_28");
  ModelSpec skipping = plain;
  skipping.skips = {{0, 2}};
  EXPECT_EQ(cost(skipping).params, cost(plain).params);
  EXPECT_EQ(cost(skipping).macs.total(), cost(plain).macs.total());
  EXPECT_EQ(cost(skipping).activation_bytes, cost(plain).activation_bytes + 4 * 17 * 64);
}

TEST(CostTest, IsCountedWithoutOverflowForTheLargestLegalNetwork) {
  ModelSpec spec;
  spec.img_size = 512;
  spec.in_chans = 1024;
  spec.num_classes = 1000000;
  VitSpec vit;
  vit.patch_size = 1;
  vit.embed_dim = 16384;
  for (int64_t i = 0; i < kMostBlocks; ++i) {
    vit.blocks.push_back(block_of(i, 1024, 16, 262144));
  }
  spec.family = vit;
  ASSERT_NO_THROW(validate(spec));
  const Cost counted = cost(spec);
  const double t = 262145;
  const double e = 16384;
  const double expected = 1024.0 * (t * (4 * e * e + 2 * e * 262144) + 2 * t * t * e);
  EXPECT_NEAR(static_cast<double>(counted.macs.total()) / expected, 1.0, 1e-3);
  EXPECT_GT(counted.activation_bytes, 0);
  EXPECT_EQ(counted.weight_bytes, 4 * counted.params);
}

TEST(CostJsonTest, HasTheDocumentedKeysAndTheCounts) {
  const Cost counted = cost(hand_counted());
  const Json json = cost_to_json("hand", counted);
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"model", "params", "params_trainable", "macs",
                                            "macs_without_attention", "weight_bytes",
                                            "activation_bytes", "blocks"}));
  EXPECT_EQ(json["model"], "hand");
  EXPECT_EQ(json["params"], counted.params);
  EXPECT_EQ(json["macs"], counted.macs.total());
  EXPECT_EQ(json["macs_without_attention"], counted.macs.linear + counted.macs.conv);
  EXPECT_EQ(json["blocks"], (Json::array({{{"name", "blocks.0"},
                                           {"heads", 3},
                                           {"hidden", 5},
                                           {"params", counted.blocks[0].params},
                                           {"macs", counted.blocks[0].macs}}})));
}

TEST(CostTest, OfAugmentedShortcutsIsThatOfTheirAuthors) {
  const std::vector<Override> circulant = {{"shortcut", "circulant"}};
  for (const auto& [model, more] :
       {std::pair{"deit_small_patch16_224", 92'160}, {"deit_base_patch16_224", 184'320}}) {
    const ModelSpec plain = catalog_spec(model);
    EXPECT_EQ(cost(with_overrides(plain, circulant)).params - cost(plain).params, more) << model;
  }
  const ModelSpec small = catalog_spec("deit_small_patch16_224");
  const int64_t transforms =
      cost(with_overrides(small, circulant)).macs.total() - cost(small).macs.total();
  // Their table says 4.6 G to 4.7 G. By hand: two halves of 12 blocks, 197 tokens, each 4
  // transforms of 96 numbers there and 8 back, and 2 x 16 x 49 complex products.
  EXPECT_EQ(transforms, 2 * 12 * 197 * (12 * 1264 + 4 * 2 * 16 * 49));
  EXPECT_NEAR(static_cast<double>(transforms), 0.1e9, 0.02e9);
  const ModelSpec dense = with_overrides(small, {{"shortcut", "dense"}});
  EXPECT_EQ(cost(dense).macs.total() - cost(small).macs.total(), 4 * 12 * 197 * 384 * 384);
}

/// Question 2 of SUTD 50.039, 2024, homework 4: heads of D / H channels each.
TEST(CostTest, OfAttentionIs4NDSquaredAnd2NSquaredD) {
  const ModelSpec spec = catalog_spec("deit_small_patch16_224");
  const BlockCost block = cost(spec).blocks[0];
  const int64_t n = 197, d = 384, mlp = 2 * n * d * block.hidden;
  EXPECT_EQ(block.macs - mlp, 4 * n * d * d + 2 * n * n * d);
}

TEST(CostTest, OfMixersGrowsWithTokensAsTheTheorySays) {
  struct Row {
    MixerKind kind;
    double low, high;
  };
  for (const Row& row : {Row{MixerKind::kSoftmax, 2, 2}, Row{MixerKind::kLinformer, 1, 1},
                         Row{MixerKind::kSparseStrided, 1.45, 1.55},
                         Row{MixerKind::kSparseFixed, 1.45, 1.55}, Row{MixerKind::kLsh, 1, 1.15},
                         Row{MixerKind::kLinear, 1, 1}, Row{MixerKind::kRecurrent, 1, 1}}) {
    const auto pairs = [&](int64_t tokens) {
      const Heads heads{1, 64, 1};
      Mixer mixer = default_mixer(row.kind, tokens);
      mixer.chunk = 64;
      OpDetail detail = AttentionOp{1, 64, 1, {}, "", {}};
      if (row.kind == MixerKind::kLinformer)
        detail = LinformerOp{heads, {}, "", "", mixer.k, false};
      if (mixer.is_sparse()) detail = SparseOp{heads, mixer};
      if (row.kind == MixerKind::kLsh) detail = LshOp{heads, mixer, ""};
      if (mixer.is_linear()) detail = LinearMixerOp{heads, mixer, {}};
      const Macs counted = macs({"", detail, {0}, {tokens, 64}});
      return static_cast<double>(counted.attention_qk + counted.attention_av);
    };
    const double slope = std::log2(pairs(8192) / pairs(256)) / 5;
    EXPECT_GE(slope, row.low - 1e-9) << enum_name(row.kind);
    EXPECT_LE(slope, row.high + 1e-9) << enum_name(row.kind);
  }
}

}  // namespace
}  // namespace adjoin
