// The page of `adjoin inspect`: the numbers of its JSON, whatever is missing or of another type.
#include "adjoin/report/inspect_page.h"

#include <gtest/gtest.h>

#include <cctype>
#include <set>

#include "support/page_text.h"

namespace adjoin::report {
namespace {

Json network(const std::string& model, double residual) {
  const Json block = {{"name", "blocks.0"},
                      {"tokens", 65},
                      {"width", 256},
                      {"residual_frobenius", residual},
                      {"residual_composite", 0.714},
                      {"residual_frobenius_of_input", 1.34},
                      {"residual_composite_of_input", 1.27},
                      {"token_cosine", 0.312},
                      {"effective_rank", 40.25},
                      {"activation_norm", 12.75},
                      {"gradient_norm", 0.0123},
                      {"attention_entropy", {2.5, 3.5}},
                      {"attention_rank", {11, 13}},
                      {"attention_spectrum", {{1.5, 0.5, 0.001}, {1.25, 0.25, 0}}},
                      {"weight_gradient_norm", 0.217},
                      {"first_part", {{"alpha", 4}, {"explained", 0.831}, {"cosine", 0.922}}}};
  return {{"model", model},
          {"batch", 16},
          {"data", "random images"},
          {"dtype", "float32"},
          {"seed", 7},
          {"loss", 2.375},
          {"top1", 12.5},
          {"layers",
           {{{"name", "tokens"}, {"tokens", 65}, {"residual_frobenius", 0.987}},
            block,
            {{"name", "norm"}, {"residual_frobenius", nullptr}, {"token_cosine", 0.456}}}}};
}

Json paths() {
  return {{"layers", 8},
          {"heads", {6, 6}},
          {"norms", "frozen"},
          {"image", 0},
          {"sum_error", 1e-15},
          {"constant_norm", 127.25},
          {"lengths",
           {{{"length", 0}, {"paths", 1}, {"norm", 3.21}, {"residual", 0.876}, {"share", 0.432}},
            {{"length", 1},
             {"paths", 48},
             {"norm", 0.0321},
             {"residual", 0.0045},
             {"share", 0.1},
             {"sampled", {{"paths", 8}, {"residual", 0.00432}, {"is_all", false}}}}}},
          {"without_skips",
           {{"lengths", {{{"length", 8}, {"paths", 1.6e7}, {"norm", 42.5}, {"residual", 1.5e-5}}}},
            {"sum_error", 1e-15}}},
          {"rerun", {{{"length", 0}, {"paths", 1}, {"residual", 0.555}, {"top1", 10.25}}}},
          {"notes", {"The MLPs are left out."}}};
}

Json laws() {
  const auto bound = [](const char* law, bool holds, bool is_proven) {
    return Json{{"law", law},
                {"layer", "blocks.0"},
                {"measured_log10", -1.25},
                {"bound_log10", 3.75},
                {"margin_log10", 5.125},
                {"holds", holds},
                {"is_proven", is_proven},
                {"note", "a remark"}};
  };
  return {{"bounds", {bound("Theorem 2.2", true, true), bound("Lemma 7", true, false)}},
          {"low_rank",
           {{{"layer", "blocks.0"},
             {"tokens", 65},
             {"epsilon", 0.5},
             {"k", 167},
             {"success_gaussian", 0.125},
             {"success_positive", 0.995},
             {"rank_99", {12, 14}},
             {"svd_error", {0.0321, 0.0543}}}}},
          {"slopes",
           {{{"norm", "pre"},
             {"depth_slope", -0.45},
             {"width_slope", 0.52},
             {"depths", {2, 4, 8}},
             {"gradients_by_depth", {0.3, 0.2, 0.15}},
             {"widths", {64, 128}},
             {"gradients_by_width", {0.1, 0.14}}}}},
          {"notes", {"Norms are left out."}}};
}

/// Everything that a result can hold, of a network of one block.
Json whole() {
  Json result = network("vit_mini_32", 0.8125);
  result["second"] = network("deit_tiny", 0.0625);
  result["second"]["file"] = "runs/tiny.safetensors";
  result["compare"] = {{"layers",
                        {{{"first", "blocks.0"},
                          {"second", "blocks.0"},
                          {"token_emd", 1.29},
                          {"token_emd_relative", 0.118}}}},
                       {"class_emd", 0.234},
                       {"total_variation", 0.345},
                       {"agreement", 81.25},
                       {"kl", 0.456},
                       {"notes", {"Widths differ."}}};
  result["paths"] = paths();
  result["depth"] = {{"curves",
                      {{{"name", "attention alone"},
                        {"diversity", {1, 0.003, 2e-35}},
                        {"residual_frobenius", {1, 0.01, 1e-5}}}}}};
  result["laws"] = laws();
  return result;
}

/// Whether a word stands in a text on its own.
bool has_word(const std::string& text, const std::string& word) {
  const auto is_letter = [&](size_t at) {
    return at < text.size() && std::isalpha(static_cast<unsigned char>(text[at])) != 0;
  };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    if (!is_letter(at - 1) && !is_letter(at + word.size())) return true;
  }
  return false;
}

/// A page that is finished and has a place for everything it draws.
void expect_sound(const std::string& page, const std::string& what) {
  EXPECT_TRUE(page.ends_with("</body></html>\n")) << what;
  EXPECT_FALSE(has_word(page, "nan") || has_word(page, "inf")) << what;
}

TEST(InspectPageTest, HoldsTheNumbersOfTheJson) {
  const std::string page = inspect_page(network("vit_mini_32", 0.8125));
  expect_sound(page, "one network");
  expect_all(page, {"Inside vit_mini_32", "With a batch of 16: random images, float32, seed 7",
                    "12.50 %", "2.375", "0.987", "0.812", "0.714", "1.34", "1.27", "0.312", "40.25",
                    "12.75", "0.0123", "0.217", "blocks.0: 3.00, heads from 2.50 to 3.50",
                    "rank 12.0", "1/4 of them", "0.831", "0.922"});
  EXPECT_FALSE(contains(page, "http://") || contains(page, "https://")) << "needs no network";
  EXPECT_FALSE(contains(page, "<script")) << "needs no script";
}

TEST(InspectPageTest, ShowsPathsDepthAndLaws) {
  const std::string page = inspect_page(whole());
  expect_sound(page, "all parts");
  expect_all(page, {"one of 6 heads",
                    "and what biases add, of norm 127.2, give the output to within 1e-15",
                    "Without skips the sum of all 16,000,000 paths of length 8 has norm 42.50 and "
                    "residual 1.5e-05.",
                    "Walked alone, a path is a network of its own",
                    "3.21",
                    "0.876",
                    "0.432",
                    "0.0045",
                    "8, drawn",
                    "0.555",
                    "10.25",
                    "The MLPs are left out.",
                    "attention alone",
                    "attention alone, tokens: 1.00",
                    "attention alone, after 1 block: 0.0030",
                    "attention alone, after 2 blocks: 1.0e-05",
                    "-1.25",
                    "3.75",
                    "5.12",
                    "a remark",
                    "167",
                    "k ≥ tokens",
                    "0.125",
                    "0.995",
                    "0.0432",
                    "pre norm, slope -0.45",
                    "0.520",
                    "Norms are left out."});
}

TEST(InspectPageTest, TwoNetworksAreTwoSeriesAndCompared) {
  const std::string one = inspect_page(network("vit_mini_32", 0.8125));
  const std::string two = inspect_page(whole());
  const std::string second_line = "<path class=\"line c1\"";
  EXPECT_EQ(count_of(one, second_line), 0U);
  EXPECT_GT(count_of(two, second_line), 8U);
  expect_all(two, {"Inside vit_mini_32 and tiny (deit_tiny)", "0.0625", "81.25 %", "1.29", "0.118",
                   "0.234", "0.345", "0.456", "Widths differ."});
}

TEST(InspectPageTest, AFileNamesItsNetworkAndItsModelIsSaidOnce) {
  Json result = network("vit_mini_32", 0.8);
  result["file"] = "runs/a.b/large.safetensors";
  result["second"] = network("deit_tiny", 0.7);
  result["second"]["file"] = "small-4.pth";
  const std::string page = inspect_page(result);
  const std::string body = page.substr(page.find("<body>"));
  EXPECT_TRUE(contains(body, "<h1>Inside large (vit_mini_32) and small-4 (deit_tiny)</h1>"));
  EXPECT_EQ(count_of(body, "vit_mini_32") + count_of(body, "deit_tiny"), 2U);
  EXPECT_GT(count_of(body, ">large<"), 5U) << "cards, legends, tables";
  EXPECT_GT(count_of(body, ">small-4<"), 5U);
  EXPECT_FALSE(contains(page, "(second)"));
}

TEST(InspectPageTest, NetworksOfOneNameAreToldApart) {
  Json same = network("vit", 0.8);
  same["second"] = network("vit", 0.7);
  EXPECT_TRUE(contains(inspect_page(same), "<h1>Inside vit and vit (second)</h1>"));
  same["file"] = "runs/a/large.safetensors";
  EXPECT_FALSE(contains(inspect_page(same), "(second)")) << "large and vit";
  same["second"]["file"] = "runs/b/large.safetensors";
  expect_all(inspect_page(same), {"<h1>Inside large (vit) and large (second) (vit)</h1>", ">large<",
                                  ">large (second)<"});
}

TEST(InspectPageTest, LegendsOfFirstPartsNameThoseThatHaveSome) {
  Json result = whole();
  result["second"]["layers"][1].erase("first_part");
  const std::string part = between(inspect_page(result), "The first part of each block", "<h2>The");
  EXPECT_EQ(count_of(part, ">vit_mini_32<"), 2U) << "of two charts";
  EXPECT_EQ(count_of(part, ">tiny<"), 0U);
}

TEST(InspectPageTest, TextIsNotMarkup) {
  // Every text of the JSON in turn.
  const Json flat = whole().flatten();
  size_t texts = 0;
  for (const auto& [path, value] : flat.items()) {
    if (!value.is_string()) continue;
    ++texts;
    Json result = whole();
    result[Json::json_pointer(path)] = "<b onload=\"x\">&'";
    const std::string page = inspect_page(result);
    EXPECT_FALSE(contains(page, "<b onload") || contains(page, "onload=\"")) << path;
  }
  EXPECT_GT(texts, 20U);
  Json named = whole();
  named["model"] = "<b>&\"";
  EXPECT_TRUE(contains(inspect_page(named), "<h1>Inside &lt;b&gt;&amp;&quot; and"));
}

TEST(InspectPageTest, AnAlmostEmptyResultIsStillAPage) {
  for (const char* text :
       {"{}", "[]", "null", "7", R"({"layers":[]})", R"({"layers":[{}]})", R"({"layers":[null,3]})",
        R"({"layers":[{"name":"x"}],"second":{},"compare":{},"paths":{},"depth":{},"laws":{}})",
        R"({"laws":{"bounds":[{}],"low_rank":[{}],"slopes":[{}]}})",
        R"({"paths":{"lengths":[{}],"rerun":[{}]},"depth":{"curves":[{}]}})"}) {
    const std::string page = inspect_page(Json::parse(text));
    expect_sound(page, text);
    EXPECT_TRUE(contains(page, "Inside a network")) << text;
  }
  EXPECT_TRUE(contains(inspect_page(Json::object()), "No layer was seen"));
}

TEST(InspectPageTest, AnyPartMayBeMissingOrOfAnotherType) {
  const std::vector<Json> wrongs = {
      nullptr, "word", true,   Json::array(), Json::object(), -1,         0,
      1e308,   -1e308, 5e-324, 1e-300,        {1, 2},         {{"a", 1}}, {{1, "x"}, nullptr}};
  // Every value, and every list and object around it.
  std::set<std::string> places;
  const Json flat = whole().flatten();
  for (const auto& [path, value] : flat.items()) {
    for (auto place = Json::json_pointer(path); !place.empty(); place.pop_back()) {
      places.insert(place.to_string());
    }
  }
  EXPECT_GT(places.size(), 100U);
  for (const std::string& place : places) {
    for (const Json& wrong : wrongs) {
      Json result = whole();
      result[Json::json_pointer(place)] = wrong;
      expect_sound(inspect_page(result), place + " = " + wrong.dump());
    }
  }
}

}  // namespace
}  // namespace adjoin::report
