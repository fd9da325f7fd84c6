// Paths through the heads, and networks without some of their parts, on the page of `adjoin
// inspect`.
#include "adjoin/report/inspect_paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "support/page_text.h"

namespace adjoin::report {
namespace {

Json paths(const Json& heads) {
  return {{"layers", 3},
          {"heads", heads},
          {"lengths",
           {{{"length", 0}, {"norm", 3}, {"share", 0.25}},
            {{"length", 1}, {"norm", 9}, {"share", 0.75}}}},
          {"rerun", {{{"length", 0}, {"paths", 1}, {"residual", 0.5}, {"top1", 10}}}}};
}

TEST(InspectPathsTest, SharesAreOfNorms) {
  const std::string text = paths_section(paths({6}));
  expect_all(text,
             {"<h3>Share of the norms</h3>", "<th>share of the norms</th>", "<td>0.750</td>"});
  EXPECT_FALSE(contains(text, "<th>share of the output")) << "parts cancel in the sum";
}

TEST(InspectPathsTest, HeadsAreThoseOfAllLayers) {
  EXPECT_TRUE(contains(paths_section(paths({8, 4, 6})), "one of 4 to 8 heads"));
  EXPECT_TRUE(contains(paths_section(paths({8, 8, 8})), "one of 8 heads"));
  EXPECT_TRUE(contains(paths_section(paths(3)), "one of 3 heads"));
}

TEST(InspectPathsTest, PathsWithoutSkipsAreASentence) {
  Json all = paths({6});
  EXPECT_FALSE(contains(paths_section(all), "Without skips"));
  all["without_skips"] = {
      {"lengths", {{{"length", 3}, {"paths", 216}, {"norm", 42.5}, {"residual", 1.5e-5}}}}};
  EXPECT_TRUE(contains(paths_section(all),
                       "Without skips the sum of all 216 paths of length 3 has norm 42.50 and "
                       "residual 1.5e-05."));
}

TEST(InspectPathsTest, WalksAreExplainedWhereThereAreSome) {
  Json all = paths({6});
  const std::string words = "Walked alone, a path is a network of its own";
  EXPECT_TRUE(contains(paths_section(all), words));
  all.erase("rerun");
  EXPECT_FALSE(contains(paths_section(all), words));
}

/// The chart of variety over depth.
std::string variety_chart(const Json& curves) {
  return between(depth_section({{"curves", curves}}), "How much of the tokens&#39; variety is left",
                 "</div>");
}

TEST(InspectPathsTest, VarietyIsCutWhereNothingIsLeft) {
  const std::string chart =
      variety_chart({{{"name", "attention"}, {"diversity", {1, 1e-20, 2e-35, 0}}},
                     {{"name", "skip"}, {"diversity", {1, 2, 3, 4}}}});
  expect_all(chart, {"What is below 1e-30 is drawn there.", ">&lt; 1e-30<", ">4.00<",
                     "attention, after 2 blocks: 2.0e-35", "attention, after 3 blocks: 0<",
                     ">1e-20<", ">1<"});
  EXPECT_EQ(count_of(between(chart, "class=\"line c0\" d=\"M60", "</path>"), "L"), 3U)
      << "a line of four points, none of them left out";
  const std::string whole_chart =
      variety_chart({{{"name", "attention"}, {"diversity", {1, 1e-20}}}});
  EXPECT_TRUE(contains(whole_chart, ">1.0e-20<"));
  EXPECT_FALSE(contains(whole_chart, "1e-30"));
}

TEST(InspectPathsTest, LabelsOfSixDepthCurvesKeepApart) {
  Json curves = Json::array();
  for (const double last : {1e-40, 1e-68, 4e-17, 1.0, 870.0, 5.4}) {
    curves.push_back({{"name", "kind"}, {"diversity", {1, last}}});
  }
  const std::string chart = variety_chart(curves);
  const std::regex label("<text class=\"name c\\d\" x=\"464\" y=\"([0-9.]+)\"");
  std::vector<double> heights;
  for (std::sregex_iterator at(chart.begin(), chart.end(), label), end; at != end; ++at) {
    heights.push_back(std::stod((*at)[1]));
  }
  ASSERT_EQ(heights.size(), 6U);
  std::sort(heights.begin(), heights.end());
  for (size_t i = 1; i < heights.size(); ++i) EXPECT_GE(heights[i] - heights[i - 1], 14.8);
}

TEST(InspectPathsTest, VarietyStandsBeforeTheShareOfTheTokens) {
  const Json curve = {{"name", "a"}, {"diversity", {1, 2}}, {"residual_frobenius", {0.5, 0.25}}};
  const std::string text = depth_section({{"curves", {curve}}});
  const size_t variety = text.find("variety is left</h3>");
  const size_t share = text.find("As a share of the tokens</h3>");
  ASSERT_NE(variety, text.npos);
  ASSERT_NE(share, text.npos);
  EXPECT_LT(variety, share);
}

}  // namespace
}  // namespace adjoin::report
