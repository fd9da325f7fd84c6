// Laws on the page of `adjoin inspect`: a row and a picture each, all layers where one asks.
#include "adjoin/report/inspect_laws.h"

#include <gtest/gtest.h>

#include "support/page_text.h"

namespace adjoin::report {
namespace {

constexpr const char* kNote = "the sum is not bounded by the proof";

struct Bound {
  std::string law;
  int block = 0;
  double measured = 0;
  double bound = 0;
  bool holds = true;
  bool is_proven = true;
  std::string note = {};
};

std::string section(const std::vector<Bound>& bounds) {
  Json rows = Json::array();
  for (const Bound& one : bounds) {
    rows.push_back({{"law", one.law},
                    {"layer", "blocks." + std::to_string(one.block)},
                    {"measured_log10", one.measured},
                    {"bound_log10", one.bound},
                    {"margin_log10", one.bound - one.measured},
                    {"holds", one.holds},
                    {"is_proven", one.is_proven},
                    {"note", one.note}});
  }
  const Json layers = {{{"name", "tokens"}}, {{"name", "blocks.0"}}, {{"name", "blocks.1"}}};
  return laws_section({{"bounds", rows}}, layers);
}

/// What is seen before one asks for all layers.
std::string shown(const std::string& text) { return text.substr(0, text.find("<details>")); }

std::string hidden(const std::string& text) { return between(text, "<details>", "</details>"); }

std::string row_of(const std::string& text, const std::string& law) {
  return between(shown(text), "<tr><td>" + law + "</td>", "</tr>");
}

TEST(InspectLawsTest, ALawIsOneRowWithItsLeastMargin) {
  const std::string text = section({{"Theorem 2.2", 0, 1, 7.5}, {"Theorem 2.2", 1, 2, 4.25}});
  EXPECT_EQ(row_of(text, "Theorem 2.2"),
            "<tr><td>Theorem 2.2</td><td>2</td><td>2 of 2</td><td>2.25</td>"
            "<td class=\"words\">blocks.1</td><td class=\"words\">yes</td>");
  EXPECT_EQ(count_of(shown(text), "<td>Theorem 2.2</td>"), 1U);
}

TEST(InspectLawsTest, ADifferenceOfRoundingIsNotBelowZero) {
  const std::string text = section({{"|LN|", 0, 2.4, 2.4 - 1e-10}});
  EXPECT_TRUE(contains(row_of(text, "|LN|"), "<td>0.00</td>"));
}

TEST(InspectLawsTest, AnUnprovenLawThatFailsSaysSoWithoutAnAlarm) {
  const std::string note = "proven for start values";
  const std::string text = section(
      {{"maximum", 0, 2, 1.5, false, false, note}, {"maximum", 1, 2, 2.5, true, false, note}});
  expect_all(row_of(text, "maximum"), {"<b>1 of 2</b>", "-0.50", "no (proven for start values)"});
  EXPECT_FALSE(contains(text, "class=\"problems\"") || contains(text, "broken"));
  EXPECT_EQ(count_of(hidden(text), ">does not hold<"), 1U);
}

TEST(InspectLawsTest, AProvenLawThatFailsIsSaidFirst) {
  const std::string text = section({{"Lemma 7", 0, 1, 2}, {"Lemma 7", 1, 2, 1, false}});
  const std::string problem =
      "<div class=\"problems\"><p>Lemma 7 is proven and does not hold in blocks.1.</p></div>";
  ASSERT_TRUE(contains(text, problem));
  EXPECT_LT(text.find(problem), text.find("<table"));
  EXPECT_TRUE(contains(row_of(text, "Lemma 7"), "<b class=\"tag broken\">1 of 2</b>"));
  EXPECT_EQ(count_of(hidden(text), ">broken<"), 1U);
}

TEST(InspectLawsTest, WhatSeveralLawsSayIsSaidOnceBelowTheTable) {
  const std::string text = section({{"S.4", 0, 1, 2, true, false, kNote},
                                    {"S.4", 1, 1, 2, true, false, kNote},
                                    {"S.5", 0, 1, 2, true, false, kNote},
                                    {"S.6", 0, 1, 2, true, false, "another reason"}});
  EXPECT_EQ(count_of(shown(text), kNote), 1U);
  EXPECT_TRUE(contains(shown(text), std::string("<sup>1</sup> ") + kNote));
  for (const char* law : {"S.4", "S.5"}) {
    EXPECT_TRUE(contains(row_of(text, law), "no<sup>1</sup>")) << law;
  }
  EXPECT_TRUE(contains(row_of(text, "S.6"), "no (another reason)"));
}

TEST(InspectLawsTest, FormsOfALawWithAndWithoutAProofAreTwoRows) {
  const std::string text =
      section({{"S.6", 0, 1, 2, true, false}, {"S.6", 0, 1, 3}, {"S.6", 1, 1, 4}});
  expect_all(shown(text), {"<td>S.6</td><td>1</td><td>1 of 1</td><td>1.00</td>",
                           "<td>S.6</td><td>2</td><td>2 of 2</td><td>2.00</td>"});
  EXPECT_EQ(count_of(text, "not proven for this form"), 1U);
}

TEST(InspectLawsTest, EveryLawHasAPictureWithItsOwnScale) {
  const std::string text = shown(section({{"small", 0, 1.5, 2},
                                          {"small", 1, 1.25, 2},
                                          {"vast", 0, -10, 20},
                                          {"vast", 1, -14, 16000}}));
  EXPECT_EQ(count_of(text, "<svg"), 2U);
  const std::string small = between(text, "<title>small</title>", "</svg>");
  const std::string vast = between(text, "<title>vast</title>", "</svg>");
  EXPECT_TRUE(contains(vast, ">15000<"));
  EXPECT_FALSE(contains(small, "000<"));
  for (const std::string& picture : {small, vast}) {
    EXPECT_EQ(count_of(picture, "<path class=\"line c0\" d="), 1U) << "measured, solid";
    EXPECT_EQ(count_of(picture, "<path class=\"line c1\" stroke-dasharray"), 1U) << "bound";
    expect_all(picture, {">blocks.0<", ">blocks.1<"});
  }
  expect_all(small, {"blocks.1: measured 10^1.25", "blocks.1: bound 10^2.00"});
}

TEST(InspectLawsTest, AllLayersAreThereButClosed) {
  const std::string text = section({{"S.4", 0, 1.125, 2, true, false, kNote},
                                    {"S.4", 1, 1, 2.375, true, false, kNote},
                                    {"S.5", 0, 1, 2, true, true, "first"},
                                    {"S.5", 1, 1, 2, true, true, "second"}});
  EXPECT_TRUE(contains(text, "<details><summary>All layers</summary>")) << "not open";
  EXPECT_EQ(count_of(text, "<details"), 1U);
  expect_all(hidden(text), {"1.12", "2.38", "not proven for this form"});
  EXPECT_EQ(count_of(hidden(text), kNote), 1U) << "once above the table of a law";
  expect_all(hidden(text), {">first</td>", ">second</td>"});
  EXPECT_TRUE(contains(row_of(text, "S.5"), "yes (see its layers)"));
}

TEST(InspectLawsTest, LowRankShowsTheErrorOfTheBestMatrix) {
  const Json row = {{"layer", "blocks.0"}, {"rank_99", {3, 5}}, {"svd_error", {0.02, 0.04}}};
  const std::string text = laws_section({{"low_rank", {row}}}, Json::array());
  EXPECT_TRUE(contains(text, "<th>most</th><th>error at rank log2 n, mean</th>"));
  EXPECT_TRUE(contains(text, "<td>4</td><td>3</td><td>5</td><td>0.0300</td>"));
}

}  // namespace
}  // namespace adjoin::report
