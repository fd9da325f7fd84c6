// Mixers, norms and shortcuts as words of a spec: patterns, defaults, what a place cannot hold.
#include "adjoin/spec/mixer.h"

#include <gtest/gtest.h>

#include "adjoin/spec/catalog.h"
#include "adjoin/spec/derive.h"
#include "adjoin/spec/overrides.h"
#include "adjoin/spec/sparse.h"
#include "support/expect_error.h"

namespace adjoin {
namespace {

using Changes = std::vector<Override>;

ModelSpec changed(std::string_view model, const Changes& changes) {
  return with_overrides(catalog_spec(model), changes);
}

const BlockSpec& block_of(const ModelSpec& spec, size_t index) {
  return *placed_blocks(spec)[index].block;
}

TEST(SparseTest, PairsOfThePaper) {
  struct Row {
    int64_t tokens, stride;
    std::array<int64_t, 3> strided, fixed;  // local, far, both
  };
  const Row rows[] = {{16, 4, {70, 40, 82}, {40, 28, 64}},
                      {64, 8, {540, 288, 708}, {288, 232, 512}},
                      {256, 16, {4216, 2176, 5896}, {2176, 1936, 4096}},
                      {1024, 32, {33264, 16896, 48144}, {16896, 15904, 32768}}};
  constexpr SparsePart kParts[] = {SparsePart::kLocal, SparsePart::kFar, SparsePart::kBoth};
  for (const Row& row : rows) {
    for (size_t i = 0; i < 3; ++i) {
      const Mixer strided{.kind = MixerKind::kSparseStrided,
                          .stride = row.stride,
                          .band = row.stride,
                          .part = kParts[i],
                          .is_causal = true};
      const Mixer fixed{.kind = MixerKind::kSparseFixed,
                        .stride = row.stride,
                        .columns = 1,
                        .part = kParts[i],
                        .is_causal = true};
      EXPECT_EQ(sparse_pairs(strided, row.tokens), row.strided[i]) << row.tokens << " " << i;
      EXPECT_EQ(sparse_pairs(fixed, row.tokens), row.fixed[i]) << row.tokens << " " << i;
    }
  }
}

TEST(SparseTest, LayoutHoldsEveryPairOnce) {
  for (const int64_t tokens : {5, 16, 33}) {
    for (const auto kind : {MixerKind::kSparseStrided, MixerKind::kSparseFixed}) {
      for (const bool is_causal : {false, true}) {
        Mixer mixer = default_mixer(kind, tokens);
        mixer.is_causal = is_causal;
        const SparseLayout layout = sparse_layout(mixer, tokens);
        const std::vector<bool> mask = sparse_mask(mixer, tokens);
        const auto width = static_cast<size_t>(layout.near + layout.far);
        ASSERT_EQ(mask.size(), static_cast<size_t>(layout.padded) * width);
        const auto seen = std::count(mask.begin(), mask.begin() + tokens * int64_t(width), true);
        EXPECT_EQ(seen, sparse_pairs(mixer, tokens));
      }
    }
  }
}

TEST(MixerTest, WordBringsTheFieldsOfItsKind) {
  const ModelSpec spec = changed("vit_mini_32", {{"mixer", "linformer"}, {"mixer.k", "16"}});
  const int64_t tokens = placed_blocks(spec)[0].tokens;
  for_each_block(spec, [&](const BlockSpec& block) {
    EXPECT_EQ(block.mixer, (Mixer{.kind = MixerKind::kLinformer, .k = 16}));
  });
  for (const auto& [name, kind] : kEnumNames<MixerKind>) {
    const ModelSpec other = changed("vit_mini_32", {{"mixer", std::string(name)}});
    EXPECT_EQ(block_of(other, 1).mixer, default_mixer(kind, tokens)) << name;
    EXPECT_EQ(spec_from_json(spec_to_json(other)), other) << name;
  }
}

TEST(MixerTest, OfOneBlockIsSetByItsPath) {
  const ModelSpec spec = changed("vit_mini_32", {{"blocks.2.mixer.causal", "true"},
                                                 {"blocks.2.mixer", "linear"},
                                                 {"blocks.1.mixer.kind", "lsh"},
                                                 {"blocks.1.mixer.rounds", "2"},
                                                 {"mixer", "sparse-fixed"}});
  EXPECT_EQ(block_of(spec, 0).mixer.kind, MixerKind::kSparseFixed);
  EXPECT_EQ(block_of(spec, 1).mixer.kind, MixerKind::kLsh);
  EXPECT_EQ(block_of(spec, 1).mixer.rounds, 2);
  EXPECT_EQ(block_of(spec, 2).mixer, (Mixer{.kind = MixerKind::kLinear, .is_causal = true}));
}

TEST(MixerTest, NormsAndShortcutsAreSetForAllBlocksOrOne) {
  const ModelSpec spec = changed("t2t_mini_32", {{"norm", "res-post"},
                                                 {"blocks.0.norm", "pre"},
                                                 {"shortcut", "circulant"},
                                                 {"shortcut.scale", "0.75"},
                                                 {"blocks.1.shortcut", "none"},
                                                 {"blocks.2.shortcut", "dense"}});
  EXPECT_EQ(block_of(spec, 0).norm, NormPlacement::kPre);
  EXPECT_EQ(block_of(spec, 1).norm, NormPlacement::kResPost);
  EXPECT_EQ(block_of(spec, 0).shortcut, (Shortcut{.scale = 0.75}));
  EXPECT_FALSE(block_of(spec, 1).shortcut.has_value());
  EXPECT_EQ(block_of(spec, 2).shortcut->kind, ShortcutKind::kDense);
}

TEST(MixerTest, SwinHoldsThoseThatSuitItsWindows) {
  const ModelSpec spec = changed("swin_mini_32", {{"stages.0.blocks.0.mixer", "linear"},
                                                  {"stages.1.blocks.0.mixer", "linformer"}});
  EXPECT_EQ(block_of(spec, 0).mixer.kind, MixerKind::kLinear);
  const auto refused = [](const Changes& changes, std::initializer_list<std::string_view> parts) {
    expect_error(ErrorKind::kConfig, parts, [&] { changed("swin_mini_32", changes); });
  };
  refused({{"mixer", "linear"}}, {"layers.0.blocks.1.mixer.kind", "shifted by", "softmax"});
  refused({{"stages.0.blocks.0.mixer", "lsh"}},
          {"layers.0.blocks.0.mixer.kind: is lsh", "linformer"});
  refused({{"stages.0.blocks.0.mixer", "linear"}, {"stages.0.blocks.0.mixer.causal", "true"}},
          {"mixer.causal", "no order"});
}

TEST(MixerTest, OutOfRangeIsRefusedWithWhatIsLegal) {
  const auto refused = [](const Changes& changes, std::initializer_list<std::string_view> parts) {
    expect_error(ErrorKind::kConfig, parts, [&] { changed("vit_mini_32", changes); });
  };
  refused({{"mixer", "linformer"}, {"mixer.k", "66"}},
          {"model.blocks.0.mixer.k: is 66, must be at most 65, the number of tokens"});
  refused({{"mixer", "sparse-fixed"}, {"mixer.columns", "9"}},
          {"columns", "at most 8, the stride"});
  refused({{"mixer", "lsh"}, {"mixer.chunk", "66"}}, {"chunk", "at most 65"});
  refused({{"mixer", "linear"}, {"mixer.causal", "true"}}, {"model.pool", "set pool=avg"});
  refused({{"mixer", "quadratic"}}, {"unknown value \"quadratic\"", "linformer", "recurrent"});
  refused({{"mixer.k", "3"}}, {"unknown key model.blocks.0.mixer.k"});
  refused({{"norm", "past"}}, {"model.blocks.0.norm", "res-post-v2"});
  refused({{"shortcut", "circulant"}, {"shortcut.blocks", "5"}},
          {"model.blocks.0.shortcut.blocks: 5 does not divide embed_dim", "legal: 1, 2"});
  refused({{"shortcut", "round"}}, {"shortcut.kind", "circulant, dense"});
}

TEST(MixerTest, CausalSparseAttentionToFarKeysAloneIsRefused) {
  expect_error(ErrorKind::kConfig, {"would see nothing"}, [] {
    changed("vit_mini_32", {{"pool", "avg"},
                            {"mixer", "sparse-fixed"},
                            {"mixer.part", "far"},
                            {"mixer.causal", "true"}});
  });
}

TEST(MixerTest, NarrowNetworksHaveFewerCirculantBlocks) {
  const ModelSpec large = changed("vit_mini_32", {{"shortcut", "circulant"}});
  const Derived small = derive(large, choice_from_alphas(large, {2}), Geometry::kNarrow);
  EXPECT_EQ(block_of(small.spec, 0).shortcut->blocks, 2);
  const ModelSpec odd =
      changed("vit_mini_32", {{"shortcut", "circulant"}, {"shortcut.blocks", "1"}});
  expect_error(ErrorKind::kUsage, {"circulant blocks", "use geometry kept"},
               [&] { derive(odd, choice_from_alphas(odd, {2}), Geometry::kNarrow); });
  EXPECT_EQ(block_of(derive(odd, choice_from_alphas(odd, {2}), Geometry::kKept).spec, 0).shortcut,
            block_of(odd, 0).shortcut);
}

TEST(MixerTest, ThatAChoiceChangesBringsTensorsOfItsOwn) {
  const ModelSpec large = changed("vit_mini_32", {{"mixer", "linformer"}});
  Choice choice = keep_everything(large);
  choice.blocks[0].mixer = default_mixer(MixerKind::kLinformer, 65);
  choice.blocks[0].mixer.share = ProjectionShare::kNone;
  choice.blocks[1].mixer.k = 8;
  choice.blocks[2].mixer = {};
  const Derived small = derive(large, choice, Geometry::kKept);
  std::map<std::string, bool> is_slice;
  for (const Source& source : small.sources)
    is_slice[source.tensor.name] = source.slice.has_value();
  EXPECT_FALSE(is_slice.at("blocks.0.attn.proj_k")) << "one per head cannot come from a shared one";
  EXPECT_TRUE(is_slice.at("blocks.0.attn.qkv.weight"));
  EXPECT_TRUE(is_slice.at("blocks.1.attn.proj_k")) << "the first columns";
  EXPECT_FALSE(is_slice.contains("blocks.2.attn.proj_k"));
}

TEST(MixerTest, OfAnotherNetworkIsNoPartOfIt) {
  const ModelSpec large = catalog_spec("vit_mini_32");
  for (const Changes& changes :
       {Changes{{"mixer", "lsh"}}, Changes{{"norm", "post"}}, Changes{{"shortcut", "dense"}}}) {
    expect_error(ErrorKind::kUsage, {"another norm, mixer or shortcut"},
                 [&] { choice_between(large, with_overrides(large, changes)); });
  }
}

TEST(MixerTest, MoreProductsThanCanBeCountedAreRefused) {
  const Changes huge = {{"img_size", "8176"}, {"patch_size", "16"}, {"embed_dim", "16384"},
                        {"heads", "1024"},    {"head_dim", "16"},   {"depth", "1024"}};
  const ModelSpec largest = changed("vit_mini_28", huge);
  EXPECT_GT(placed_blocks(largest)[0].tokens, 261'000);
  for (const Changes& more :
       {Changes{{"mixer", "lsh"}, {"mixer.chunk", "261122"}, {"mixer.rounds", "64"}},
        Changes{{"shortcut", "dense"}, {"shortcut.branches", "64"}},
        Changes{{"shortcut", "circulant"},
                {"shortcut.branches", "64"},
                {"shortcut.blocks", "16384"}}}) {
    Changes all = huge;
    all.insert(all.end(), more.begin(), more.end());
    expect_error(ErrorKind::kConfig, {"model.blocks.0", "more products than can be counted"},
                 [&] { changed("vit_mini_28", all); });
  }
}

TEST(MixerTest, HalfSaidPartsAreRefusedInASentence) {
  expect_error(ErrorKind::kConfig, {"model.blocks.0.mixer", "kind"}, [] {
    changed("vit_mini_28", {{"mixer", "{}"}});
  });
  EXPECT_EQ(
      block_of(changed("vit_mini_28", {{"mixer", "{}"}, {"mixer.kind", "lsh"}}), 0).mixer.kind,
      MixerKind::kLsh);
  expect_error(ErrorKind::kConfig, {"model.tokens"}, [] {
    changed("t2t_mini_28", {{"tokens", R"({"kind":"performer","splits":[],"dim":64})"}});
  });
}

}  // namespace
}  // namespace adjoin
