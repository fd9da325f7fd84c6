// Looks inside the networks of a run: in its log and its report, and without a trace in its
// weights.
#include "cli/train_runs.h"

namespace adjoin {
namespace {

class TrainInspectTest : public testing::Test {
 protected:
  /// {epoch: what the epoch's line says of the networks}
  std::map<int64_t, Json> inspections(const std::string& run) const {
    std::map<int64_t, Json> found;
    for (const Json& line : log_of(run)) {
      if (line.at("kind") == "epoch" && line.contains("inspect")) {
        found[line.at("epoch").get<int64_t>()] = line.at("inspect");
      }
    }
    return found;
  }

  static std::vector<std::string> names(const Json& inspection) {
    std::vector<std::string> found;
    for (const Json& network : inspection.at("networks")) {
      found.push_back(network.at("name").get<std::string>());
      for (const Json& layer : network.at("layers")) {
        EXPECT_GT(layer.at("residual_frobenius").get<double>(), 0);
        EXPECT_GT(layer.at("gradient_norm").get<double>(), 0);
      }
    }
    return found;
  }

  std::string page(const std::string& run) const {
    return read_text_file(run + "/report.html", size_t{1} << 24);
  }

  TempFolder folder;
};

TEST_F(TrainInspectTest, EverySecondEpochAndTheLastAreSeenAndTheWeightsStayTheSame) {
  const std::string watched = folder / "watched";
  const std::string plain = folder / "plain";
  ASSERT_EQ(adjoin(small_run("vit_mini_28", watched), {"--inspect-interval", "2"}).exit_code, 0);
  ASSERT_EQ(adjoin(small_run("vit_mini_28", plain)).exit_code, 0);
  const auto found = inspections(watched);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(names(found.at(1)), Words{"model"});
  EXPECT_EQ(found.at(2).at("networks").at(0).at("layers").size(), 6U);
  EXPECT_TRUE(inspections(plain).empty());
  EXPECT_EQ(read_text_file(watched + "/model.safetensors", size_t{1} << 24),
            read_text_file(plain + "/model.safetensors", size_t{1} << 24));
  EXPECT_TRUE(contains(page(watched), "Inside the network"));
  EXPECT_FALSE(contains(page(plain), "Inside the network"));
}

TEST_F(TrainInspectTest, LargeAndSmallNetworksAreSeenWhenCompressing) {
  Words words = small_run("swin_mini_28", folder / "run");
  words[0] = "compress";
  const ProgramResult result = adjoin(words, {"--alpha", "2,4", "--inspect-interval", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto found = inspections(folder / "run");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(names(found.at(0)), (Words{"large", "small-2", "small-4"}));
  EXPECT_TRUE(contains(page(folder / "run"), "Inside the network"));
}

TEST_F(TrainInspectTest, WhatASearchFindsIsSeenToo) {
  Words words = small_run("vit_mini_28", folder / "run");
  words[0] = "search";
  const ProgramResult result = adjoin(words, {"--method", "dan", "--target-macs", "0.5x",
                                              "--search-epochs", "2", "--inspect-interval", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto searching = inspections(folder / "run/search");
  ASSERT_EQ(searching.size(), 2U);
  const Words seen = names(searching.at(1));
  EXPECT_EQ(seen.front(), "large");
  EXPECT_NE(std::find(seen.begin(), seen.end(), "searched"), seen.end());
  EXPECT_EQ(inspections(folder / "run").size(), 3U);
  EXPECT_TRUE(contains(page(folder / "run"), "Inside the network"));
}

}  // namespace
}  // namespace adjoin
