// What reports say of runs: the numbers of the log, whatever else is missing or damaged.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "adjoin/report/html.h"
#include "adjoin/report/picture.h"
#include "adjoin/report/svg.h"
#include "adjoin/report/tables.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/derive.h"
#include "support/expect_error.h"
#include "support/model_files.h"
#include "support/temp_folder.h"

namespace adjoin::report {
namespace {

class ReportTest : public testing::Test {
 protected:
  static std::string epoch_line(int epoch, double large, double small) {
    return fmt::format(
        R"({{"kind":"epoch","epoch":{},"eval_top1":{},"eval_loss":1.5,"seconds":{},"small":[{{"name":"small-2","eval_top1":{},"eval_loss":1.75}}]}})"
        "\n",
        epoch, large, 10 * (epoch + 1), small);
  }

  /// A run of `compress` with two epochs; what the test changes, it writes again.
  void write_run(const std::string& run, int64_t seed = 0, double top1 = 62.5) {
    std::filesystem::create_directories(folder / run);
    folder.write(
        run + "/config.yaml",
        fmt::format("alpha: [2]\nmodel: vit_mini_28\ndata: d\nepochs: 2\nseed: {}\n", seed));
    folder.write(run + "/log.jsonl", R"({"kind":"train","seconds":3})"
                                     "\n" +
                                         epoch_line(0, 40.25, 31) + epoch_line(1, top1, 58.75));
    const ModelSpec large = catalog_spec("vit_mini_28");
    const ModelSpec small = derive(large, choice_from_alphas(large, {2}), Geometry::kKept).spec;
    write(run, "large", large);
    write(run, "small-2", small);
    folder.write(
        run + "/result.json",
        R"({"large":{"latency_ms":4.5},"small":[{"file":"x/small-2.safetensors","latency_ms":1.5}]})");
    folder.write(run + "/predictions.json", predictions("cat"));
  }

  void write(const std::string& run, const std::string& name, const ModelSpec& spec) {
    write_model(folder / (run + "/" + name + ".safetensors"), spec,
                io::to_metadata({spec, {}, default_preprocessing(spec), {}}));
  }

  static std::string predictions(const std::string& label) {
    const std::vector<uint8_t> pixels = {0, 50, 100, 255};
    const Json answer = {{"class", 1}, {"probability", 0.75}};
    return Json{{"classes", {label, "dog"}},
                {"images", {10, 20}},
                {"correct", {{"large", {90, 45.5}}, {"small-2", {80, 40}}}},
                {"samples",
                 {{{"image", png_data_uri(2, 2, 1, pixels)},
                   {"label", 0},
                   {"answers", {{"large", answer}, {"small-2", answer}}}}}}}
        .dump();
  }

  std::string page(const std::string& run) const {
    return read_file(write_report(folder / run).path);
  }

  static void expect_all(const std::string& text, std::initializer_list<std::string_view> parts) {
    for (const auto part : parts) EXPECT_TRUE(contains(text, part)) << part;
  }

  TempFolder folder;
};

TEST_F(ReportTest, ViewsHoldTheNumbersOfTheLog) {
  write_run("run");
  const RunView view = read_run(folder / "run");
  EXPECT_TRUE(view.problems.empty()) << view.problems.front();
  ASSERT_EQ(view.networks.size(), 2U);
  EXPECT_EQ(view.networks[0].name, "large");
  EXPECT_EQ(view.networks[1].name, "small-2");
  ASSERT_EQ(view.networks[1].points.size(), 2U);
  EXPECT_EQ(view.networks[0].points[0].top1, 40.25);
  EXPECT_EQ(view.networks[1].points[1].top1, 58.75);
  EXPECT_EQ(view.networks[1].points[1].loss, 1.75);
  EXPECT_EQ(view.networks[0].params, 139018);
  EXPECT_EQ(view.networks[1].latency_ms, 1.5);
  EXPECT_EQ(view.seconds, 20);
  EXPECT_EQ(view.epochs, 2);
  EXPECT_EQ(view.classes[1].top1[0], 45.5);
  EXPECT_FALSE(view.samples[0].answers[0].is_right);
  EXPECT_EQ(view.samples[0].answers[0].label, "dog");
}

TEST_F(ReportTest, ThePageShowsThem) {
  write_run("run");
  write_run("other");
  const std::string text = page("run");
  expect_all(text, {"62.50", "58.75", "-3.75 points", "139,018", "3.00x faster", "4 of 8",
                    "64 of 128", "cat", "45.5", "data:image/png;base64,",
                    "adjoin compress --config", "alpha: [2]", "Grey: other runs"});
  EXPECT_FALSE(contains(text, "http://") || contains(text, "https://")) << "needs no network";
  EXPECT_FALSE(contains(text, "<script")) << "needs no script";
}

TEST_F(ReportTest, NothingBesideARunHoldsItsPageUp) {
  write_run("run");
  for (const char* other : {"pipe", "folder"}) std::filesystem::create_directories(folder / other);
  ASSERT_EQ(mkfifo((folder / "pipe/log.jsonl").c_str(), 0666), 0);
  std::filesystem::create_directories(folder / "folder/log.jsonl");
  EXPECT_TRUE(runs_beside(folder / "run").empty());
  EXPECT_TRUE(write_report(folder / "run").problems.empty());
  EXPECT_TRUE(contains(read_run(folder / "pipe").problems.at(1), "There is no log.jsonl"));
}

TEST_F(ReportTest, PartsOfASearchAreWhatTheirLogSaysNotItsConfig) {
  std::filesystem::create_directories(folder / "teacher");
  folder.write("teacher/config.yaml",
               "method: bayes\ncandidates: []\nmodel: vit_mini_28\ndata: d\nepochs: 9\n");
  folder.write("teacher/log.jsonl",
               R"({"kind":"epoch","epoch":0,"epochs":3,"eval_top1":40,"eval_loss":1.5,"seconds":2})"
               "\n");
  write("teacher", "model", catalog_spec("vit_mini_28"));
  const RunView view = read_run(folder / "teacher");
  ASSERT_EQ(view.networks.size(), 1U);
  EXPECT_EQ(view.networks[0].name, "model");
  EXPECT_EQ(view.networks[0].params, 139018);
  EXPECT_EQ(view.wanted_epochs, 3);
  EXPECT_TRUE(contains(page("teacher"), "1 of 3 epochs are finished"));
}

TEST_F(ReportTest, OnlyFoldersOfRunsHaveOne) {
  std::filesystem::create_directories(folder / "other");
  expect_error(ErrorKind::kData, {"is not the folder of a run"},
               [&] { check_run(folder / "other"); });
  folder.write("other/rank.json", "{}");
  expect_error(ErrorKind::kData, {"adjoin rank"}, [&] { check_run(folder / "other"); });
  write_run("run");
  check_run(folder / "run");
}

TEST_F(ReportTest, DamageIsSaidInOurOwnWords) {
  write_run("run");
  folder.write("run/result.json", "{");
  folder.write("run/predictions.json", "{}");
  const RunView view = read_run(folder / "run");
  ASSERT_EQ(view.problems.size(), 2U);
  EXPECT_TRUE(contains(view.problems[0], "result.json cannot be read"));
  EXPECT_EQ(view.problems[1],
            "predictions.json cannot be read: it is not of these networks, or damaged.");
  folder.write("run/result.json", "[1]");
  EXPECT_EQ(read_run(folder / "run").problems.size(), 1U);
}

TEST_F(ReportTest, TheTimeOfASearchIsThatOfAllOfIt) {
  write_run("run");
  EXPECT_FALSE(contains(page("run"), "with the search"));
  folder.write("run/config.yaml", "candidates: []\nmodel: vit_mini_28\ndata: d\nepochs: 2\n");
  folder.write("run/result.json", R"({"seconds": 90, "search_seconds": 0})");
  EXPECT_TRUE(contains(page("run"), "2 epochs on d, 20 s</p>")) << "there was no search";
  folder.write("run/result.json", R"({"seconds": 90, "search_seconds": 70})");
  EXPECT_TRUE(contains(page("run"), "2 epochs on d, 20 s; 1:30 with the search before it"));
  folder.write("run/result.json", R"({"seconds": "long", "search_seconds": 70})");
  EXPECT_TRUE(contains(page("run"), "2 epochs on d, 20 s</p>"));
}

TEST_F(ReportTest, ChartsPutValuesWhereTheirAxesSay) {
  const std::string chart =
      line_chart({{"a", {{1, 0}, {2, 100}}}, {"b", {{1, 100}, {2, 0}}}}, {"x"}, {"y"});
  // Both cross: where one begins the other ends, at the two ends of the x axis.
  expect_all(chart, {"M56.0 ", " L530.0 ", ">a 100.00<", ">b 0.00<"});
  const size_t a = chart.find("M56.0 "), b = chart.find("M56.0 ", a + 1);
  const auto end = [&](size_t at) {
    return std::stod(chart.substr(chart.find(" L530.0 ", at) + 8));
  };
  EXPECT_EQ(std::stod(chart.substr(a + 6)), end(b));
  EXPECT_EQ(std::stod(chart.substr(b + 6)), end(a));
  EXPECT_LT(end(a), end(b)) << "more is higher";
}

TEST_F(ReportTest, NamesFromOutsideAreTextNotMarkup) {
  write_run("run");
  folder.write("run/predictions.json", predictions("<script>alert(1)</script>"));
  folder.write("run/config.yaml", "model: \"<b>\"\ndata: d\nepochs: 2\nalpha: [2]\n");
  const std::string text = page("run");
  EXPECT_FALSE(contains(text, "<script>"));
  expect_all(text, {"&lt;script&gt;", "&lt;b&gt;"});
  Json said = parse_json(predictions("cat"), "");
  said["samples"][0]["image"] = "x\" onerror=\"alert(1)";
  folder.write("run/predictions.json", said.dump());
  EXPECT_FALSE(contains(page("run"), "onerror"));
  EXPECT_TRUE(contains(page("run"), "predictions.json cannot be read"));
}

TEST_F(ReportTest, WhatIsMissingOrDamagedIsSaidAndTheRestShown) {
  std::filesystem::create_directories(folder / "empty");
  expect_all(page("empty"), {"The config cannot be read", "There is no log.jsonl"});
  write_run("run");
  folder.write("run/log.jsonl", epoch_line(0, 40.25, 31) + "{\"kind\":\"epo\n");
  std::filesystem::remove(folder / "run/small-2.safetensors");
  folder.write("run/large.safetensors", "no model");
  folder.write("run/predictions.json", "{");
  folder.write("run/result.json", "[]");
  expect_all(page("run"),
             {"40.25", "31.00", "1 line of log.jsonl cannot be read, the first is line 2",
              "There is no small-2.safetensors", "large.safetensors cannot be read",
              "predictions.json cannot be read", "1 of 2 epochs are finished"});
  expect_error(ErrorKind::kIo, {"none", "no such folder"}, [&] { read_run(folder / "none"); });
}

class SearchReportTest : public ReportTest {
 protected:
  /// An epoch of a search over two blocks.
  static Json search_line(int epoch, double first) {
    return {{"kind", "epoch"},
            {"epoch", epoch},
            {"seconds", 1},
            {"eval_top1", 50},
            {"eval_loss", 1},
            {"small", {{{"name", "searched"}, {"eval_top1", 41.5}, {"eval_loss", 1}}}},
            {"search",
             {{"candidates", {{1, 2}, {1, 4}}},
              {"probabilities", {{first, 1 - first}, {0.5, 0.5}}},
              {"expected_macs", 1.25e6},
              {"networks", {{"searched", {{"macs", 1234567}, {"params", 4321}}}}}}}};
  }

  void write_search(const std::string& log) {
    write_run("run");
    std::filesystem::create_directories(folder / "run/search");
    folder.write("run/config.yaml",
                 "candidates: []\nmodel: vit_mini_28\nset: []\ndata: d\nepochs: 2\nseed: 0\n");
    folder.write("run/search/log.jsonl", log);
  }
};

TEST_F(SearchReportTest, ShowsWhatTheSearchSaw) {
  write_search(search_line(0, 0.5).dump() + "\n" + search_line(1, 0.875).dump() + "\n");
  expect_all(page("run"), {"Searching vit_mini_28", "The search", "41.50", "1,234,567", "block 1",
                           "1/1 88 %", "1/2: 12 %"});
}

TEST_F(SearchReportTest, TakesOnlyWholeLinesAndSaysWhatIsDamaged) {
  Json empty = search_line(0, 0.5);
  empty["search"]["candidates"] = empty["search"]["probabilities"] = {Json::array(), Json::array()};
  Json other = search_line(1, 0.5);
  other["search"]["probabilities"] = {{1}};
  Json part = search_line(1, 0.25);
  part["small"] = 7;
  write_search(empty.dump() + "\n" + search_line(0, 0.75).dump() + "\n" + other.dump() + "\n" +
               part.dump() + "\n{\n");
  folder.write("run/search/trial-notes.txt", "mine");
  folder.write("run/search/trial-001", "a file");
  std::filesystem::create_directory_symlink("..", folder / "run/search/trial-002");
  folder.write("run/architecture.json", "{");
  expect_all(page("run"), {"4 lines of search/log.jsonl cannot be read", "1/1 75 %",
                           "What was found cannot be drawn"});
  EXPECT_FALSE(contains(page("run"), "networks were tried"));
}

TEST_F(ReportTest, TablesHaveMeanAndSpreadOverSeeds) {
  write_run("a", 0, 60);
  write_run("b", 1, 64);
  const std::vector<RunView> runs = {read_run(folder / "a"), read_run(folder / "b")};
  expect_all(
      runs_table(runs, TableFormat::kMarkdown),
      {"| vit_mini_28 | large | 2 | 62.00 ± 2.83 | 139 k |", "| small-2 | 2 | 58.75 ± 0.00 |"});
  expect_all(runs_table(runs, TableFormat::kLatex),
             {"vit\\_mini\\_28 & large & 2 & 62.00 $\\pm$ 2.83", "\\bottomrule"});
  expect_all(runs_table(runs, TableFormat::kCsv), {"vit_mini_28,large,2,62.0000,2.8284,139018,"});
}

TEST(SvgTest, AxesAreFinishedWhateverIsShown) {
  for (const double value : {0.0, 1e-300, 4e15, -3e18, 1e300}) {
    for (const double other : {value, value * (1 + 1e-15), 3.0}) {
      const std::vector<Series> points = {{"a", {{value, other}}}, {"b", {{other, value}}}};
      const std::string picture = scatter(points, 0, {"x"}, {"y"});
      EXPECT_EQ(picture.find("nan"), std::string::npos) << value << " " << other;
      EXPECT_LT(picture.size(), 20000U);
      if (value <= 0) continue;
      EXPECT_EQ(scatter(points, 0, {"x", true}, {"y"}).find("nan"), std::string::npos) << value;
    }
  }
}

TEST_F(ReportTest, PicturesAreWhatTheirBytesSay) {
  const std::vector<uint8_t> pixels(12, 7);
  const std::string uri = png_data_uri(2, 2, 3, pixels);
  EXPECT_TRUE(is_png_data_uri(uri));
  EXPECT_TRUE(uri.starts_with("data:image/png;base64,iVBORw0KGgo")) << "PNG's own opening";
  EXPECT_FALSE(is_png_data_uri("data:image/png;base64,\"><script>"));
  EXPECT_FALSE(is_png_data_uri("https://example.org/x.png"));
  expect_error(ErrorKind::kInternal, {"picture"}, [&] { png_data_uri(2, 3, 3, pixels); });
}

}  // namespace
}  // namespace adjoin::report
