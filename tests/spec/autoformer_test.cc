// Networks of AutoFormer, from its own YAML files.
#include "adjoin/spec/autoformer.h"

#include <gtest/gtest.h>

#include "adjoin/spec/brief.h"
#include "adjoin/spec/named.h"
#include "adjoin/spec/tensors.h"
#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace adjoin {
namespace {

class AutoformerTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    folder.write(name, text);
    return folder / name;
  }

  TempFolder folder;
};

/// The published networks (github.com/microsoft/Cream, AutoFormer/experiments/subnet) and their
/// counts.
TEST_F(AutoformerTest, PublishedNetworksHaveThePublishedCounts) {
  const auto params = [&](const std::string& retrain) {
    const std::string path = write("net.yaml", "SUPERNET: {DEPTH: 14}\nRETRAIN:\n" + retrain);
    EXPECT_EQ(read_architectures(path).at(0), named_spec(path));
    int64_t count = 0;
    for (const TensorInfo& info : tensors(named_spec(path))) count += info.numel();
    return count;
  };
  EXPECT_EQ(
      params("  {MLP_RATIO: [3.5, 3.5, 3.0, 3.5, 3.0, 3.0, 4.0, 4.0, 3.5, 4.0, 3.5, 4.0, 3.5],"
             "   NUM_HEADS: [3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 3, 3],"
             "   DEPTH: 13, EMBED_DIM: 192}"),
      5'867'944);
  EXPECT_EQ(
      params("  {MLP_RATIO: [3.0, 3.5, 3.0, 3.5, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 3.5, 4.0],"
             "   NUM_HEADS: [6, 6, 5, 7, 5, 5, 5, 6, 6, 7, 7, 6, 7],"
             "   DEPTH: 13, EMBED_DIM: 384}"),
      22'891'432);
  EXPECT_EQ(
      params("  {MLP_RATIO: [3.5, 3.5, 4.0, 3.5, 4.0, 3.5, 3.5, 3.0, 4.0, 4.0, 3.0, 4.0, 3.0, 3.5],"
             "   NUM_HEADS: [9, 9, 9, 9, 9, 10, 9, 9, 10, 9, 10, 9, 9, 10],"
             "   DEPTH: 14, EMBED_DIM: 576}"),
      53'691'688);
}

TEST_F(AutoformerTest, SpacesAreNamedOrRead) {
  EXPECT_EQ(autoformer_space("autoformer-small").heads, (std::vector<int64_t>{5, 6, 7}));
  const std::string path =
      write("mine.yaml",
            "SEARCH_SPACE: {MLP_RATIO: [3.5, 4], NUM_HEADS: [3], DEPTH: [2], EMBED_DIM: [64]}");
  const AutoformerSpace space = autoformer_space(path);
  EXPECT_EQ(space.name, "mine");
  EXPECT_EQ(space.mlp_ratios, (std::vector<double>{3.5, 4}));
}

TEST_F(AutoformerTest, SaysWhatIsWrong) {
  expect_error(ErrorKind::kUsage, {"autoformer-huge: is no space", "autoformer-tiny"},
               [] { autoformer_space("autoformer-huge"); });
  const auto refused = [&](const std::string& text, std::initializer_list<std::string_view> parts) {
    const std::string path = write("bad.yaml", text);
    std::vector<std::string_view> all(parts);
    expect_error(ErrorKind::kData, {path}, [&] { named_spec(path); });
    for (const std::string_view part : all) {
      expect_error(ErrorKind::kData, {part}, [&] { named_spec(path); });
    }
  };
  refused("SUPERNET: {}", {"has no RETRAIN"});
  refused("RETRAIN: {MLP_RATIO: [4], NUM_HEADS: [3], DEPTH: 1}", {"EMBED_DIM: is missing"});
  refused("RETRAIN: {MLP_RATIO: [4], NUM_HEADS: [3], DEPTH: 2, EMBED_DIM: 64}",
          {"heads: has 1 numbers for 2 blocks"});
  refused("RETRAIN: {MLP_RATIO: 4, NUM_HEADS: -3, DEPTH: 2, EMBED_DIM: 64}", {"heads: block 0"});
}

}  // namespace
}  // namespace adjoin
