// Charts of curves: gaps, scales, legends, small pictures.
#include "adjoin/report/curves.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "support/page_text.h"

namespace adjoin::report {
namespace {

TEST(CurvesTest, WhatIsNoNumberLeavesAGap) {
  const Curve curve{.name = "a", .points = {{0, 1}, {1, 2}, {2, NAN}, {3, 4}, {4, 5}}};
  const std::string chart = curve_chart({curve}, {"x"}, {"y"});
  const size_t path = chart.find("<path class=\"line c0\"");
  const std::string drawn = chart.substr(path, chart.find('>', path) - path);
  EXPECT_EQ(count_of(drawn, "M"), 2U) << "two pieces: " << drawn;
  EXPECT_EQ(count_of(drawn, "L"), 2U);
  EXPECT_EQ(curve_chart({{.name = "b", .points = {{0, NAN}}}}, {"x"}, {"y"}), "");
}

TEST(CurvesTest, LogarithmicWhereValuesArePowersOfTenApart) {
  const auto is_log = [](const std::vector<double>& values) {
    Curve curve;
    for (const double value : values) curve.points.emplace_back(1, value);
    return axis_for({curve}, "y").is_log;
  };
  EXPECT_TRUE(is_log({1, 0.005}));
  EXPECT_FALSE(is_log({1, 0.02}));
  EXPECT_FALSE(is_log({1, 0.005, -1})) << "nothing that is shown may vanish";
  EXPECT_FALSE(is_log({0, 0}));
}

TEST(CurvesTest, LegendsNameEveryCurveOnceWithinThePicture) {
  std::vector<Curve> curves;
  for (size_t i = 0; i < 16; ++i) {
    curves.push_back({.name = "network " + std::to_string(i), .colour = i, .points = {{0, 1}}});
  }
  const std::string chart = curve_chart(curves, {"x"}, {"y"});
  for (const Curve& curve : curves) EXPECT_EQ(count_of(chart, ">" + curve.name + "<"), 1U);
  const std::regex place("<text class=\"name c\\d\" x=\"([0-9.]+)\"");
  for (std::sregex_iterator at(chart.begin(), chart.end(), place), end; at != end; ++at) {
    EXPECT_LT(std::stod((*at)[1]), 520 - 7 * 10);
  }
}

TEST(CurvesTest, ADecadeIsMarkedAtOneHoweverFarTheOthersAre) {
  for (const double least : {1e-13, 1e-27, 1e-30, 1e-100}) {
    const Curve curve{.name = "a", .points = {{10, least}, {20, 700}}};
    EXPECT_TRUE(contains(curve_chart({curve}, {"x"}, {"y", true}), ">1</text>")) << least;
  }
}

TEST(CurvesTest, AWordMayStandForTheLastValue) {
  Curve curve{.name = "a", .points = {{0, 1}, {1, 2}}};
  EXPECT_TRUE(contains(curve_chart({curve}, {"x"}, {"y"}), ">2.00</text>"));
  curve.end = "< 3";
  const std::string chart = curve_chart({curve}, {"x"}, {"y"});
  EXPECT_TRUE(contains(chart, ">&lt; 3</text>"));
  EXPECT_FALSE(contains(chart, ">2.00</text>"));
}

TEST(CurvesTest, PanelsShareAScaleOrHaveTheirOwn) {
  const std::vector<Panel> all = {
      {.title = "low", .curves = {{.points = {{0, 1}, {1, 2}}}}},
      {.title = "high", .curves = {{.points = {{0, 0}, {1, 20000}}}}, .ends = {"first", "last"}},
      {.title = "none", .curves = {{.points = {{0, NAN}}}}}};
  const std::string low_title = "<title>low</title>";
  const std::string common = panels(all, {"x"}, {"y"});
  EXPECT_EQ(count_of(common, "<svg"), 3U);
  EXPECT_TRUE(contains(between(common, low_title, "</svg>"), ">20000</text>"));
  const std::string own = panels(all, {"x"}, {"y"}, PanelScale::kOwn);
  EXPECT_EQ(count_of(own, "<svg"), 2U) << "what is empty is left out";
  EXPECT_FALSE(contains(between(own, low_title, "</svg>"), ">20000</text>"));
  EXPECT_TRUE(contains(between(own, low_title, "</svg>"), ">1.5</text>"));
  EXPECT_TRUE(contains(between(own, "<title>high</title>", "</svg>"), ">20000</text>"));
  expect_all(own, {">first</text>", ">last</text>"});
  EXPECT_EQ(panels({all[2]}, {"x"}, {"y"}, PanelScale::kOwn), "");
}

}  // namespace
}  // namespace adjoin::report
