#include "adjoin/report/inspect_laws.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "adjoin/report/curves.h"
#include "adjoin/report/html_parts.h"
#include "adjoin/report/json_parts.h"

namespace adjoin::report {
namespace {

/// The bounds of one law for one form of it: proven or not, in their order.
struct Law {
  std::string name;
  std::optional<bool> is_proven;
  std::vector<const Json*> bounds = {};

  /// What all bounds say beside their numbers; nothing where they differ.
  std::optional<std::string> note() const {
    const std::string first = text_at(*bounds.front(), "note");
    for (const Json* bound : bounds) {
      if (text_at(*bound, "note") != first) return std::nullopt;
    }
    return first;
  }
};

std::vector<Law> laws_of(const Json& bounds) {
  std::vector<Law> laws;
  for (const Json& bound : bounds) {
    if (!bound.is_object()) continue;
    Law law{text_at(bound, "law"), truth_at(bound, "is_proven")};
    if (law.name.empty()) law.name = "law without a name";
    auto place = std::find_if(laws.begin(), laws.end(), [&](const Law& other) {
      return other.name == law.name && other.is_proven == law.is_proven;
    });
    if (place == laws.end()) place = laws.insert(place, std::move(law));
    place->bounds.push_back(&bound);
  }
  return laws;
}

/// A logarithm to base 10, or a difference of two.
std::string power(std::optional<double> value) {
  constexpr double kMostDigits = 1e6;
  if (!value) return "";
  if (std::abs(*value) >= kMostDigits) return short_number(*value);
  const std::string text = fmt::format("{:.2f}", *value);
  return text == "-0.00" ? "0.00" : text;
}

/// "7 of 8", of the bounds that say it.
std::string held(const Law& law) {
  size_t held = 0, known = 0;
  for (const Json* bound : law.bounds) {
    const auto holds = truth_at(*bound, "holds");
    known += holds ? 1 : 0;
    held += holds == true ? 1 : 0;
  }
  if (known == 0) return "";
  const std::string text = fmt::format("{} of {}", held, known);
  if (held == known) return text;
  return fmt::format("<b{}>{}</b>", law.is_proven == true ? " class=\"tag broken\"" : "", text);
}

/// The bound that is nearest to what was measured, or furthest below it.
const Json* tightest(const Law& law) {
  const Json* found = nullptr;
  double least = INFINITY;
  for (const Json* bound : law.bounds) {
    const auto margin = number_at(*bound, "margin_log10");
    if (!margin || *margin >= least) continue;
    least = *margin;
    found = bound;
  }
  return found;
}

/// What several laws say alike, numbered in their order.
std::vector<std::string> common_notes(const std::vector<Law>& laws) {
  std::vector<std::string> seen, common;
  const auto has = [](const std::vector<std::string>& list, const std::string& text) {
    return std::find(list.begin(), list.end(), text) != list.end();
  };
  for (const Law& law : laws) {
    const std::string note = law.note().value_or("");
    if (note.empty()) continue;
    if (has(seen, note) && !has(common, note)) common.push_back(note);
    seen.push_back(note);
  }
  return common;
}

/// "no" and why; a number where other laws say the same.
std::string proven(const Law& law, const std::vector<std::string>& common) {
  const std::string word = !law.is_proven ? "" : *law.is_proven ? "yes" : "no";
  const std::string note = law.note().value_or("see its layers");
  if (note.empty()) return word;
  const auto place = std::find(common.begin(), common.end(), note);
  if (place != common.end()) {
    return fmt::format("{}<sup>{}</sup>", word, place - common.begin() + 1);
  }
  return word.empty() ? escaped(note) : fmt::format("{} ({})", word, escaped(note));
}

std::string summary(const std::vector<Law>& laws) {
  const std::vector<std::string> common = common_notes(laws);
  DenseTable table({"law", "layers", "holds", "least margin, powers of ten", "<in", "<proven"});
  for (const Law& law : laws) {
    const Json* const least = tightest(law);
    table.add({escaped(law.name), std::to_string(law.bounds.size()), held(law),
               least == nullptr ? "" : power(number_at(*least, "margin_log10")),
               least == nullptr ? "" : escaped(text_at(*least, "layer")), proven(law, common)});
  }
  std::string text = table.html();
  for (size_t i = 0; i < common.size(); ++i) {
    text += fmt::format("<p class=\"sub\"><sup>{}</sup> {}</p>", i + 1, escaped(common[i]));
  }
  return text;
}

/// The number of a layer, or the place of the bound among those of its law.
double layer_number(const Json& layers, const Json& bound, size_t otherwise) {
  const std::string name = text_at(bound, "layer");
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!name.empty() && text_at(layers[i], "name") == name) return static_cast<double>(i);
  }
  return static_cast<double>(otherwise);
}

/// What was measured and what is allowed, by layer.
Panel law_panel(const Law& law, const Json& layers) {
  std::vector<std::pair<double, const Json*>> placed;
  for (size_t i = 0; i < law.bounds.size(); ++i) {
    placed.emplace_back(layer_number(layers, *law.bounds[i], i), law.bounds[i]);
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Curve measured{.colour = 0}, allowed{.colour = 1, .is_dashed = true};
  for (const auto& [layer, bound] : placed) {
    const auto add = [&](Curve& curve, const char* field, const char* word) {
      const auto value = number_at(*bound, field);
      curve.points.emplace_back(layer, value.value_or(NAN));
      curve.titles.push_back(
          fmt::format("{}: {} 10^{}", text_at(*bound, "layer"), word, power(value)));
    };
    add(measured, "measured_log10", "measured");
    add(allowed, "bound_log10", "bound");
  }
  return {
      .title = law.is_proven == false ? law.name + " (not proven)" : law.name,
      .curves = {std::move(measured), std::move(allowed)},
      .ends = {text_at(*placed.front().second, "layer"), text_at(*placed.back().second, "layer")}};
}

std::string law_panels(const std::vector<Law>& laws, const Json& layers) {
  std::vector<Panel> all;
  for (const Law& law : laws) all.push_back(law_panel(law, layers));
  constexpr double kRoom = 0.3;  // what is equal but for rounding should look equal
  const std::string pictures = panels(all, {"layer", false, 0, /*is_whole=*/true},
                                      {"log10", false, kRoom}, PanelScale::kOwn);
  if (pictures.empty()) return "";
  return "<h3>What was measured and what is allowed</h3>" +
         sentence(
             "Exponents of ten, each law with a scale of its own. Solid: measured. Dashed: what "
             "the law allows; it holds where the solid line is not above the dashed one.") +
         pictures;
}

/// A proof that fails is an error of ours or of arithmetic, and is said first.
std::string broken_laws(const std::vector<Law>& laws) {
  std::string text;
  for (const Law& law : laws) {
    std::string where;
    for (const Json* bound : law.bounds) {
      if (truth_at(*bound, "holds") != false || law.is_proven != true) continue;
      where += (where.empty() ? "" : ", ") + escaped(text_at(*bound, "layer"));
    }
    if (where.empty()) continue;
    text += fmt::format("<p>{} is proven and does not hold in {}.</p>", escaped(law.name), where);
  }
  return text.empty() ? "" : "<div class=\"problems\">" + text + "</div>";
}

std::string law_table(const Law& law) {
  const std::optional<std::string> note = law.note();
  const char* const fails =
      law.is_proven == true ? "<b class=\"tag broken\">broken</b>" : "does not hold";
  DenseTable table(
      {"layer", "measured, log10", "bound, log10", "margin, log10", "<verdict", "<note"});
  for (const Json* bound : law.bounds) {
    const auto holds = truth_at(*bound, "holds");
    table.add({escaped(text_at(*bound, "layer")), power(number_at(*bound, "measured_log10")),
               power(number_at(*bound, "bound_log10")), power(number_at(*bound, "margin_log10")),
               !holds   ? ""
               : *holds ? "holds"
                        : fails,
               note ? "" : escaped(text_at(*bound, "note"))});
  }
  const char* const tag =
      law.is_proven == false ? " <span class=\"tag\">not proven for this form</span>" : "";
  return fmt::format("<h3>{}{}</h3>", escaped(law.name), tag) +
         (note && !note->empty() ? sentence(*note) : "") + table.html();
}

std::string law_tables(const std::vector<Law>& laws) {
  std::string text;
  for (const Law& law : laws) text += law_table(law);
  return text.empty() ? "" : "<details><summary>All layers</summary>" + text + "</details>";
}

std::string low_rank_part(const Json& rows) {
  DenseTable table({"layer", "tokens", "ε", "k", "<", "success, Gaussian", "success, positive",
                    "rank for 99 %, mean", "least", "most", "error at rank log2 n, mean"});
  for (const Json& row : rows) {
    if (!row.is_object()) continue;
    const auto tokens = number_at(row, "tokens");
    const auto k = number_at(row, "k");
    const Spread ranks(numbers_at(row, "rank_99"));
    const double error = Spread(numbers_at(row, "svd_error")).mean;
    const auto rank = [](double value) { return std::isnan(value) ? "" : count_cell(value); };
    table.add({escaped(text_at(row, "layer")), count_cell(tokens), cell(number_at(row, "epsilon")),
               count_cell(k),
               tokens && k && *k >= *tokens ? "<span class=\"tag\">k ≥ tokens</span>" : "",
               cell(number_at(row, "success_gaussian")), cell(number_at(row, "success_positive")),
               rank(ranks.mean), rank(ranks.least), rank(ranks.most),
               std::isfinite(error) ? short_number(error) : ""});
  }
  const std::string html = table.html();
  if (html.empty()) return "";
  return "<h3>Low rank of attention</h3>" +
         sentence(
             "How often a random projection of attention to k dimensions kept its product "
             "with a vector to within a share ε, for vectors of Gaussian and of positive "
             "numbers; how many singular values hold 99 % of a head's attention; and how far, "
             "relative to its size, the best matrix of rank log2 n is from it, n the tokens.") +
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
  const std::vector<Law> found = laws_of(list_at(laws, "bounds"));
  const std::string text = broken_laws(found) + summary(found) + notes(texts_at(laws, "notes")) +
                           law_panels(found, layers) + law_tables(found) +
                           low_rank_part(list_at(laws, "low_rank")) +
                           slopes_part(list_at(laws, "slopes"));
  return text.empty() ? "" : "<h2>Laws beside measurements</h2>" + text;
}

}  // namespace adjoin::report
