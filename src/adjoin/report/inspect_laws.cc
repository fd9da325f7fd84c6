#include "adjoin/report/inspect_laws.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "adjoin/report/curves.h"
#include "adjoin/report/html_parts.h"
#include "adjoin/report/json_parts.h"

namespace adjoin::report {
namespace {

/// The bounds of one law, in their order.
struct Law {
  std::string name;
  std::vector<const Json*> bounds;
};

std::vector<Law> laws_of(const Json& bounds) {
  std::vector<Law> laws;
  for (const Json& bound : bounds) {
    if (!bound.is_object()) continue;
    std::string name = text_at(bound, "law");
    if (name.empty()) name = "law without a name";
    auto place =
        std::find_if(laws.begin(), laws.end(), [&](const Law& law) { return law.name == name; });
    if (place == laws.end()) place = laws.insert(place, {name, {}});
    place->bounds.push_back(&bound);
  }
  return laws;
}

bool is_unproven(const Json& bound) { return truth_at(bound, "is_proven") == false; }

std::string verdict(const Json& bound) {
  const auto holds = truth_at(bound, "holds");
  std::string text = !holds ? "" : *holds ? "holds" : "<b class=\"tag broken\">broken</b>";
  if (is_unproven(bound)) {
    text += fmt::format("{}<span class=\"tag\">not proven for this form</span>",
                        text.empty() ? "" : " ");
  }
  return text;
}

std::string bounds_table(const Law& law) {
  DenseTable table(
      {"layer", "measured, log10", "bound, log10", "margin, log10", "<verdict", "<note"});
  const auto power = [](const Json& bound, const char* field) {
    const auto value = number_at(bound, field);
    return value ? fmt::format("{:.2f}", *value) : "";
  };
  for (const Json* bound : law.bounds) {
    table.add({escaped(text_at(*bound, "layer")), power(*bound, "measured_log10"),
               power(*bound, "bound_log10"), power(*bound, "margin_log10"), verdict(*bound),
               escaped(text_at(*bound, "note"))});
  }
  return table.html();
}

/// The number of a layer, or the place of the bound among those of its law.
double layer_number(const Json& layers, const Json& bound, size_t otherwise) {
  const std::string name = text_at(bound, "layer");
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!name.empty() && text_at(layers[i], "name") == name) return static_cast<double>(i);
  }
  return static_cast<double>(otherwise);
}

/// A number of each bound of a law, by layer.
Curve law_curve(const Law& law, const Json& layers, const char* field) {
  Curve curve;
  std::vector<std::pair<double, const Json*>> placed;
  for (size_t i = 0; i < law.bounds.size(); ++i) {
    placed.emplace_back(layer_number(layers, *law.bounds[i], i), law.bounds[i]);
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [layer, bound] : placed) {
    const auto value = number_at(*bound, field);
    curve.points.emplace_back(layer, value.value_or(NAN));
    curve.titles.push_back(
        fmt::format("{}, {}: {}", law.name, text_at(*bound, "layer"), cell(value)));
  }
  return curve;
}

std::string bounds_charts(const std::vector<Law>& laws, const Json& layers) {
  std::vector<Curve> sizes, margins;
  for (size_t i = 0; i < laws.size(); ++i) {
    const auto add = [&](std::vector<Curve>& to, const char* field, const std::string& suffix) {
      to.push_back(law_curve(laws[i], layers, field));
      to.back().name = laws[i].name + suffix;
      to.back().colour = i;
      to.back().is_dashed = field == std::string_view("bound_log10");
    };
    const auto& bounds = laws[i].bounds;
    const bool is_doubtful = std::any_of(bounds.begin(), bounds.end(),
                                         [](const Json* bound) { return is_unproven(*bound); });
    add(sizes, "measured_log10", ", measured");
    add(sizes, "bound_log10", ", bound");
    add(margins, "margin_log10", is_doubtful ? " (not proven)" : "");
  }
  const Axis x{"layer", false, 0, /*is_whole=*/true};
  return plots(plot("What was measured and what is allowed",
                    "Logarithms to base 10. A dashed line is what a law allows, the line of the "
                    "same colour what was measured, which should be below.",
                    curve_chart(sizes, x, {"log10"})) +
               plot("How far below its bound",
                    "Powers of ten from what was measured up to what a law allows. Below 0 the law "
                    "is broken; far above it says little.",
                    curve_chart(margins, x, {"powers of ten"}, Legend::kAlways)));
}

/// A proof that fails is an error of ours or of arithmetic, and is said first.
std::string broken_laws(const std::vector<Law>& laws) {
  std::string text;
  for (const Law& law : laws) {
    std::string where;
    for (const Json* bound : law.bounds) {
      if (truth_at(*bound, "holds") != false || truth_at(*bound, "is_proven") != true) continue;
      where += (where.empty() ? "" : ", ") + escaped(text_at(*bound, "layer"));
    }
    if (where.empty()) continue;
    text += fmt::format("<p>{} is proven and does not hold in {}.</p>", escaped(law.name), where);
  }
  return text.empty() ? "" : "<div class=\"problems\">" + text + "</div>";
}

std::string bounds_part(const Json& bounds, const Json& layers) {
  const std::vector<Law> laws = laws_of(bounds);
  std::string text = broken_laws(laws) + bounds_charts(laws, layers);
  for (const Law& law : laws) text += "<h3>" + escaped(law.name) + "</h3>" + bounds_table(law);
  return text;
}

std::string low_rank_part(const Json& rows) {
  DenseTable table({"layer", "tokens", "ε", "k", "<", "success, Gaussian", "success, positive",
                    "rank for 99 %, mean", "least", "most"});
  for (const Json& row : rows) {
    if (!row.is_object()) continue;
    const auto tokens = number_at(row, "tokens");
    const auto k = number_at(row, "k");
    const Spread ranks(numbers_at(row, "rank_99"));
    const auto rank = [](double value) { return std::isnan(value) ? "" : count_cell(value); };
    table.add({escaped(text_at(row, "layer")), count_cell(tokens), cell(number_at(row, "epsilon")),
               count_cell(k),
               tokens && k && *k >= *tokens ? "<span class=\"tag\">k ≥ tokens</span>" : "",
               cell(number_at(row, "success_gaussian")), cell(number_at(row, "success_positive")),
               rank(ranks.mean), rank(ranks.least), rank(ranks.most)});
  }
  const std::string html = table.html();
  if (html.empty()) return "";
  return "<h3>Low rank of attention</h3>" +
         sentence(
             "How often a random projection of attention to k dimensions kept its product "
             "with a vector to within a share ε, for vectors of Gaussian and of positive "
             "numbers; and how many singular values hold 99 % of a head's attention.") +
         html;
}

/// Gradients of one kind of networks, by what is varied.
std::string slope_chart(const Json& slopes, const std::string& varied) {
  std::vector<Curve> curves;
  for (const Json& one : slopes) {
    const std::vector<double> across = numbers_at(one, varied + "s");
    const std::vector<double> gradients = numbers_at(one, "gradients_by_" + varied);
    const auto slope = number_at(one, varied + "_slope");
    Curve curve{.name = text_at(one, "norm"), .colour = curves.size()};
    curve.name = fmt::format("{} norm{}", curve.name.empty() ? "no" : curve.name,
                             slope ? fmt::format(", slope {:.2f}", *slope) : "");
    for (size_t i = 0; i < std::min(across.size(), gradients.size()); ++i) {
      curve.points.emplace_back(across[i], gradients[i]);
      curve.titles.push_back(
          fmt::format("{} {}: {}", varied, across[i], short_number(gradients[i])));
    }
    curves.push_back(std::move(curve));
  }
  return curve_chart(curves, {varied, /*is_log=*/true}, {"norm of gradients", /*is_log=*/true},
                     Legend::kAlways);
}

std::string slopes_part(const Json& slopes) {
  const std::string charts =
      plots(plot("Gradients by depth",
                 "Both axes are logarithmic, so a power law is a line and its power the slope.",
                 slope_chart(slopes, "depth")) +
            plot("Gradients by width", "The same for networks of one depth and several widths.",
                 slope_chart(slopes, "width")));
  DenseTable table({"norm", "slope by depth", "slope by width"});
  for (const Json& one : slopes) {
    if (!one.is_object()) continue;
    table.add({escaped(text_at(one, "norm")), cell(number_at(one, "depth_slope")),
               cell(number_at(one, "width_slope"))});
  }
  return charts + table.html();
}

}  // namespace

std::string laws_section(const Json& laws, const Json& layers) {
  const std::string text =
      bounds_part(list_at(laws, "bounds"), layers) + low_rank_part(list_at(laws, "low_rank")) +
      slopes_part(list_at(laws, "slopes")) + sentences(texts_at(laws, "notes"));
  return text.empty() ? "" : "<h2>Laws beside measurements</h2>" + text;
}

}  // namespace adjoin::report
