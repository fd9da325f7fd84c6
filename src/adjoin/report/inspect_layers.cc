#include "adjoin/report/inspect_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "adjoin/report/curves.h"
#include "adjoin/report/html_parts.h"
#include "adjoin/report/json_parts.h"

namespace adjoin::report {
namespace {

constexpr double kRoom = 0.03;  // small changes should look small

enum class Shape { kPlain, kLogWhereFar, kLog };

struct Measure {
  std::string_view field;  ///< of a layer
  std::string_view name;
};

/// One chart over depth. Where there are two measures the second is dashed.
struct DepthPlot {
  std::string_view title;
  std::string_view sentence;
  std::string_view label;
  std::vector<Measure> measures;
  Shape shape;
};

std::vector<DepthPlot> depth_plots() {
  return {
      {"How different the tokens are",
       "The residual is what is left of the tokens when their mean is taken away, here as a share "
       "of their norm. At 0 all tokens are alike: the rank has collapsed.",
       "residual / tokens",
       {{"residual_frobenius", "Frobenius"}, {"residual_composite", "composite norm"}},
       Shape::kLogWhereFar},
      {"Beside what entered",
       "The same residual over that of the tokens that enter the first block. Where it falls, "
       "tokens are drawn together; where it rises, they are driven apart.",
       "residual / of the input",
       {{"residual_frobenius_of_input", "Frobenius"},
        {"residual_composite_of_input", "composite norm"}},
       Shape::kLogWhereFar},
      {"Which way tokens point",
       "The mean cosine of two different tokens of an image. At 1 they all point the same way.",
       "cosine of tokens",
       {{"token_cosine", "cosine"}},
       Shape::kPlain},
      {"How many directions they use",
       "The effective rank: exp of the entropy of the tokens' singular values. 1 is a single "
       "direction; it cannot exceed the number of tokens, nor their width.",
       "effective rank",
       {{"effective_rank", "rank"}},
       Shape::kLogWhereFar},
      {"Activations",
       "The norm of what each layer gives out. A steady rise is what residual connections do.",
       "norm of activations",
       {{"activation_norm", "norm"}},
       Shape::kLog},
      {"Gradients",
       "The norm of the loss's gradient at what a layer gives out, and at the weights of a block. "
       "Towards the first layers it should neither vanish nor explode.",
       "norm of gradients",
       {{"gradient_norm", "activations"}, {"weight_gradient_norm", "weights"}},
       Shape::kLog},
  };
}

/// A value of every layer that `value_of` finds; gaps where there is none.
template <class ValueOf>
Curve curve_of(const Inspected& network, size_t colour, ValueOf value_of) {
  Curve curve;
  curve.colour = colour;
  for (size_t i = 0; i < network.layers.size(); ++i) {
    const std::optional<double> value = value_of(network.layers[i]);
    curve.points.emplace_back(static_cast<double>(i), value.value_or(NAN));
    curve.titles.push_back(fmt::format("{}: {}", layer_name(network.layers, i), cell(value)));
  }
  return curve;
}

bool has_any(const Curve& curve) {
  return std::any_of(curve.points.begin(), curve.points.end(),
                     [](const Place& point) { return std::isfinite(point.second); });
}

/// Zeros on a logarithmic axis, which are seen in the table alone.
bool has_zero(const std::vector<Curve>& curves) {
  return std::any_of(curves.begin(), curves.end(), [](const Curve& curve) {
    return std::any_of(curve.points.begin(), curve.points.end(),
                       [](const Place& point) { return point.second == 0; });
  });
}

/// Curves of all measures that any layer has. Colours are networks; of several networks dashes are
/// named once.
std::vector<Curve> curves_of(const std::vector<Measure>& measures,
                             const std::vector<Inspected>& networks) {
  std::vector<Curve> curves, dashes;
  for (const Measure& measure : measures) {
    const bool is_first = measure.field == measures.front().field;
    bool is_there = false;
    for (size_t i = 0; i < networks.size(); ++i) {
      Curve curve = curve_of(networks[i], i, [&](const Json& layer) {
        return number_at(layer, std::string(measure.field));
      });
      if (!has_any(curve)) continue;
      is_there = true;
      curve.name = networks.size() > 1 ? networks[i].name : measure.name;
      curve.is_dashed = !is_first;
      curve.is_in_legend = is_first || networks.size() == 1;
      curves.push_back(std::move(curve));
    }
    if (!is_there) continue;
    dashes.push_back(
        {.name = std::string(measure.name), .colour = std::nullopt, .is_dashed = !is_first});
  }
  if (networks.size() > 1 && dashes.size() > 1) {
    curves.insert(curves.end(), dashes.begin(), dashes.end());
  }
  return curves;
}

std::string drawn(const DepthPlot& wanted, const std::vector<Inspected>& networks) {
  const std::vector<Curve> curves = curves_of(wanted.measures, networks);
  Axis y{std::string(wanted.label), wanted.shape == Shape::kLog, kRoom};
  if (wanted.shape == Shape::kLogWhereFar) y.is_log = axis_for(curves, "").is_log;
  std::string sentence(wanted.sentence);
  if (y.is_log && has_zero(curves)) sentence += " A zero has no place here and leaves a gap.";
  return plot(std::string(wanted.title), sentence, curve_chart(curves, layer_axis(networks), y));
}

/// The alpha that all first parts share; nothing where they differ.
std::optional<double> common_alpha(const std::vector<Inspected>& networks) {
  std::optional<double> common;
  for (const Inspected& network : networks) {
    for (const Json& layer : network.layers) {
      const auto alpha = number_at(object_at(layer, "first_part"), "alpha");
      if (!alpha) continue;
      if (common && *common != *alpha) return std::nullopt;
      common = alpha;
    }
  }
  return common;
}

std::string part_chart(const std::vector<Inspected>& networks, const std::string& field,
                       const std::string& label) {
  std::vector<Curve> curves;
  for (size_t i = 0; i < networks.size(); ++i) {
    Curve curve = curve_of(networks[i], i, [&](const Json& layer) {
      return number_at(object_at(layer, "first_part"), field);
    });
    if (!has_any(curve)) continue;
    curve.name = networks[i].name;
    curves.push_back(std::move(curve));
  }
  return curve_chart(curves, layer_axis(networks), {label, false, kRoom},
                     networks.size() > 1 ? Legend::kAlways : Legend::kOfSeveral);
}

std::optional<double> mean_at(const Json& layer, const std::string& field) {
  const double value = Spread(numbers_at(layer, field)).mean;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string table_of(const Inspected& network) {
  DenseTable table({"layer", "no.", "tokens", "width", "residual", "composite", "of input",
                    "composite of input", "cosine", "rank", "activations", "gradient",
                    "weight gradient", "entropy", "attention rank", "first part", "its cosine"});
  for (size_t i = 0; i < network.layers.size(); ++i) {
    const Json& layer = network.layers[i];
    const auto number = [&](const std::string& field) { return cell(number_at(layer, field)); };
    const Json& part = object_at(layer, "first_part");
    table.add({escaped(layer_name(network.layers, i)), std::to_string(i),
               count_cell(number_at(layer, "tokens")), count_cell(number_at(layer, "width")),
               number("residual_frobenius"), number("residual_composite"),
               number("residual_frobenius_of_input"), number("residual_composite_of_input"),
               number("token_cosine"), number("effective_rank"), number("activation_norm"),
               number("gradient_norm"), number("weight_gradient_norm"),
               cell(mean_at(layer, "attention_entropy")), cell(mean_at(layer, "attention_rank")),
               cell(number_at(part, "explained")), cell(number_at(part, "cosine"))});
  }
  return table.html();
}

}  // namespace

std::string layer_name(const Json& layers, size_t index) {
  const std::string name = text_at(layers[index], "name");
  return name.empty() ? fmt::format("layer {}", index) : name;
}

Axis layer_axis(const std::vector<Inspected>& networks) {
  std::set<std::string> ends;
  for (const Inspected& network : networks) {
    if (network.layers.size() < 2) continue;
    const size_t last = network.layers.size() - 1;
    ends.insert(fmt::format("layer (0: {}, {}: {})", layer_name(network.layers, 0), last,
                            layer_name(network.layers, last)));
  }
  constexpr size_t kMostLetters = 50;
  const bool is_common = ends.size() == 1 && ends.begin()->size() <= kMostLetters;
  return {is_common ? *ends.begin() : "layer", false, 0, /*is_whole=*/true};
}

std::string layers_section(const std::vector<Inspected>& networks) {
  std::string charts;
  for (const DepthPlot& wanted : depth_plots()) charts += drawn(wanted, networks);
  return charts.empty() ? "" : "<h2>Layer by layer</h2>" + plots(charts);
}

std::string first_parts_section(const std::vector<Inspected>& networks) {
  const std::optional<double> alpha = common_alpha(networks);
  const std::string charts =
      plot("How much of a block it does",
           "The share of what a block changes in its tokens that the first part changes alone. At "
           "1 the rest of the block adds nothing; below 0 the part alone does harm.",
           part_chart(networks, "explained", "share explained")) +
      plot("Whether it goes the same way",
           "The cosine of what the first part and the whole block change in the tokens.",
           part_chart(networks, "cosine", "cosine of changes"));
  if (charts.empty()) return "";
  return "<h2>The first part of each block</h2>" +
         sentence(fmt::format("A block with its first heads and hidden units alone{}.",
                              alpha ? fmt::format(", 1/{:g} of them", *alpha) : "")) +
         plots(charts);
}

std::string layers_table(const std::vector<Inspected>& networks) {
  std::string text;
  for (const Inspected& network : networks) {
    const std::string table = table_of(network);
    if (table.empty()) continue;
    if (networks.size() > 1) text += "<h3>" + escaped(network.name) + "</h3>";
    text += table;
  }
  return text.empty() ? "" : "<h2>All numbers</h2>" + text;
}

}  // namespace adjoin::report
