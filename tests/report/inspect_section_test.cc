// What reports of runs say of the layers that were looked at while training.
#include "adjoin/report/inspect_section.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "adjoin/report/html.h"
#include "support/expect_error.h"
#include "support/temp_folder.h"

namespace adjoin::report {
namespace {

class InspectSectionTest : public testing::Test {
 protected:
  static Json layer(const std::string& name, double residual, double cosine) {
    return {{"name", name},
            {"residual_frobenius", residual},
            {"token_cosine", cosine},
            {"effective_rank", 12.375}};
  }

  static Json line(int epoch) {
    return {{"kind", "epoch"},    {"epoch", epoch}, {"seconds", 1},
            {"eval_top1", 50.25}, {"eval_loss", 1}, {"small", Json::array({small(epoch)})}};
  }

  static Json small(int epoch) {
    return {{"name", "small-4"}, {"eval_top1", 40 + epoch}, {"eval_loss", 1}};
  }

  /// An epoch that looked inside two networks of three layers.
  static Json seen_line(int epoch, double residual) {
    Json result = line(epoch);
    const Json large = {layer("tokens", 0.98, 0.03), layer("blocks.0", residual, 0.217),
                        layer("norm", residual / 2, 0.314)};
    const Json other = {layer("tokens", 0.97, 0.04), layer("norm", 0.123, 0.888)};
    result["inspect"] = {
        {"batch", 8},
        {"networks",
         {{{"name", "large"}, {"layers", large}}, {{"name", "small-4"}, {"layers", other}}}}};
    return result;
  }

  void write_log(const std::string& file, const std::vector<Json>& lines) {
    std::filesystem::create_directories(folder / "run/search");
    std::string text;
    for (const Json& one : lines) text += one.dump() + "\n";
    folder.write("run/" + file, text);
    folder.write("run/config.yaml", "alpha: [4]\nmodel: vit_mini_32\ndata: d\nepochs: 3\n");
  }

  std::string page() const { return read_file(write_report(folder / "run").path); }

  static void expect_all(const std::string& text, std::initializer_list<std::string_view> parts) {
    for (const auto part : parts) EXPECT_TRUE(contains(text, part)) << part;
  }

  TempFolder folder;
};

TEST_F(InspectSectionTest, ViewsHoldWhatTheLogSaysOfTheLayers) {
  write_log("log.jsonl", {seen_line(0, 0.5), line(1), seen_line(2, 0.75)});
  const RunView view = read_run(folder / "run");
  ASSERT_EQ(view.inspections.size(), 4U);
  EXPECT_EQ(view.inspections[0].network, "large");
  EXPECT_EQ(view.inspections[3].network, "small-4");
  EXPECT_EQ(view.inspections[3].epoch, 2);
  EXPECT_EQ(view.inspections[3].images, 8);
  ASSERT_EQ(view.inspections[2].layers.size(), 3U);
  EXPECT_EQ(view.inspections[2].layers[1].name, "blocks.0");
  EXPECT_EQ(view.inspections[2].layers[1].residual, 0.75);
  EXPECT_EQ(view.inspections[2].layers[1].cosine, 0.217);
  EXPECT_EQ(view.inspections[2].layers[1].rank, 12.375);
  EXPECT_FALSE(view.inspections[2].layers[1].gradient) << "nobody measured it";
}

TEST_F(InspectSectionTest, ThePageShowsLayersOverEpochsAndNetworksOverDepth) {
  write_log("log.jsonl", {seen_line(0, 0.5), line(1), seen_line(2, 0.75)});
  const std::string text = page();
  expect_all(text, {"Inside the network", "large: how different its tokens are",
                    "small-4: which way they point", "<title>blocks.0</title>",
                    "Epoch 3, with 8 images.", "large, blocks.0: 0.750", "small-4, norm: 0.123",
                    "small-4, norm: 0.888", "large, blocks.0: 12.38"});
  EXPECT_FALSE(contains(text, "norm of gradients")) << "nobody measured it";
}

TEST_F(InspectSectionTest, OneLookIsShownOverDepthAlone) {
  write_log("log.jsonl", {seen_line(0, 0.5), line(1)});
  const std::string text = page();
  expect_all(text, {"Inside the network", "Epoch 1, with 8 images.", "large, blocks.0: 0.500"});
  EXPECT_FALSE(contains(text, "large: how different its tokens are"));
}

TEST_F(InspectSectionTest, RunsThatDidNotLookSayNothing) {
  write_log("log.jsonl", {line(0), line(1)});
  EXPECT_FALSE(contains(page(), "Inside the network"));
  EXPECT_FALSE(contains(page(), "of the layers"));
}

TEST_F(InspectSectionTest, DamageIsSaidAndTheRestOfTheLineKept) {
  const std::vector<Json> damages = {
      "word",
      7,
      Json::array(),
      Json::object(),
      {{"networks", 7}},
      {{"networks", {7}}},
      {{"networks", {{{"name", 7}, {"layers", Json::array()}}}}},
      {{"networks", {{{"name", "large"}}}}},
      {{"networks", {{{"name", "large"}, {"layers", {{"name", "x"}}}}}}},
      {{"networks", {{{"name", "large"}, {"layers", {Json{{"residual_frobenius", 1}}}}}}}},
      {{"networks",
        {{{"name", "large"}, {"layers", {Json{{"name", "x"}, {"token_cosine", "y"}}}}}}}},
      {{"networks", {{{"name", std::string(1000, 'x')}, {"layers", Json::array()}}}}},
      {{"networks", std::vector<Json>(100, {{"name", "x"}, {"layers", Json::array()}})}}};
  for (const Json& damage : damages) {
    Json damaged = line(1);
    damaged["inspect"] = damage;
    write_log("log.jsonl", {seen_line(0, 0.5), damaged});
    const RunView view = read_run(folder / "run");
    EXPECT_EQ(view.inspections.size(), 2U) << damage.dump();
    EXPECT_EQ(view.epochs, 2) << damage.dump();
    expect_all(page(), {"What 1 line of log.jsonl says of the layers cannot be read, the first is "
                        "line 2.",
                        "large, blocks.0: 0.500", "41.00"});
  }
}

TEST_F(InspectSectionTest, NumbersThatWereNoneLeaveGaps) {
  Json none = seen_line(1, 0.5);
  Json& layers = none["inspect"]["networks"][0]["layers"];
  layers[1]["residual_frobenius"] = nullptr;
  layers[2]["residual_frobenius"] = 1e308;
  write_log("log.jsonl", {seen_line(0, 0.5), none});
  const RunView view = read_run(folder / "run");
  EXPECT_FALSE(view.inspections[2].layers[1].residual);
  const std::string text = page();
  EXPECT_FALSE(contains(text, "of the layers cannot be read"));
  EXPECT_FALSE(contains(text, "nan ") || contains(text, "inf ") || contains(text, "\"nan"));
}

TEST_F(InspectSectionTest, NamesAreTextNotMarkup) {
  Json seen = seen_line(0, 0.5);
  seen["inspect"]["networks"][0]["name"] = "<script>";
  seen["inspect"]["networks"][1]["layers"][0]["name"] = "<script>";
  write_log("log.jsonl", {seen, seen});
  EXPECT_FALSE(contains(page(), "<script"));
  EXPECT_TRUE(contains(page(), "&lt;script&gt;"));
}

TEST_F(InspectSectionTest, TheSearchHasItsOwn) {
  const auto searched = [](Json line) {
    line["search"] = {{"candidates", {{1, 2}}},
                      {"probabilities", {{0.5, 0.5}}},
                      {"expected_macs", 1e6},
                      {"networks", Json::object()}};
    return line;
  };
  Json damaged = searched(line(1));
  damaged["inspect"] = 7;
  write_log("search/log.jsonl", {searched(seen_line(0, 0.5)), damaged});
  folder.write("run/config.yaml", "candidates: []\nmodel: vit_mini_32\nset: []\ndata: d\n");
  expect_all(page(), {"Inside the networks of the search", "large, blocks.0: 0.500",
                      "What 1 line of search/log.jsonl says of the layers cannot be read"});
  // The log of the search alone, read as a run.
  EXPECT_EQ(read_run(folder / "run/search").inspections.size(), 2U);
}

}  // namespace
}  // namespace adjoin::report
