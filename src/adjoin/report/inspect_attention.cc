#include "adjoin/report/inspect_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "adjoin/report/curves.h"
#include "adjoin/report/html_parts.h"
#include "adjoin/report/json_parts.h"

namespace adjoin::report {
namespace {

// Of which single heads are seen; more is a cloud, and the range says as much.
constexpr size_t kMostHeads = 16;
constexpr size_t kMostLayers = 30;

/// A value of every head: their mean as a line, their range behind it, each as a dot.
Curve heads_curve(const Inspected& network, size_t colour, const std::string& field) {
  Curve curve{.name = network.name, .colour = colour};
  for (size_t i = 0; i < network.layers.size(); ++i) {
    const auto across = static_cast<double>(i);
    const std::vector<double> heads = numbers_at(network.layers[i], field);
    const Spread spread(heads);
    curve.points.emplace_back(across, spread.mean);
    curve.ranges.emplace_back(spread.least, spread.most);
    if (heads.size() <= kMostHeads && network.layers.size() <= kMostLayers) {
      for (const double head : heads) curve.singles.emplace_back(across, head);
    }
    curve.titles.push_back(std::isnan(spread.mean)
                               ? layer_name(network.layers, i)
                               : fmt::format("{}: {}, heads from {} to {}",
                                             layer_name(network.layers, i),
                                             short_number(spread.mean), short_number(spread.least),
                                             short_number(spread.most)));
  }
  return curve;
}

/// The singular values of all heads of a block, by their place: those that are numbers.
std::vector<std::vector<double>> spectra_of(const Json& layer) {
  std::vector<std::vector<double>> places;
  for (const Json& head : list_at(layer, "attention_spectrum")) {
    const std::vector<double> values = numbers_of(head);
    places.resize(std::max(places.size(), values.size()));
    for (size_t i = 0; i < values.size(); ++i) places[i].push_back(values[i]);
  }
  return places;
}

/// Attention that is the same for every token: ln of as many as a token can look at, which are as
/// many as there are singular values.
Curve uniform_curve(const std::vector<Inspected>& networks) {
  Curve curve{.name = "all alike", .colour = std::nullopt, .is_dashed = true, .has_dots = false};
  const Inspected* longest = &networks.front();
  for (const Inspected& network : networks) {
    if (network.layers.size() > longest->layers.size()) longest = &network;
  }
  for (size_t i = 0; i < longest->layers.size(); ++i) {
    const size_t tokens = spectra_of(longest->layers[i]).size();
    curve.points.emplace_back(static_cast<double>(i),
                              tokens > 0 ? std::log(static_cast<double>(tokens)) : NAN);
  }
  return curve;
}

std::string entropies(const std::vector<Inspected>& networks) {
  std::vector<Curve> curves;
  for (size_t i = 0; i < networks.size(); ++i) {
    curves.push_back(heads_curve(networks[i], i, "attention_entropy"));
    if (networks.size() == 1) curves.back().name = "mean of the heads";
  }
  if (curve_chart(curves, {}, {}).empty()) return "";
  curves.push_back(uniform_curve(networks));
  return plot(
      "Where tokens look",
      "Entropy of attention: the line is the mean of the heads, the band their range, faint "
      "dots single heads. Low: a token looks at few others; at the grey line, at all alike.",
      curve_chart(curves, layer_axis(networks), {"entropy, nats"}));
}

std::string ranks(const std::vector<Inspected>& networks) {
  std::vector<Curve> curves;
  for (size_t i = 0; i < networks.size(); ++i) {
    curves.push_back(heads_curve(networks[i], i, "attention_rank"));
  }
  return plot("How many patterns attention has",
              "The effective rank of the matrices of attention: mean and range of the heads. At 1 "
              "every token takes the same of the others, which makes them all alike.",
              curve_chart(curves, layer_axis(networks), axis_for(curves, "effective rank")));
}

/// The mean over heads, from the largest on. Of many values the first and some of the others.
Curve spectrum_curve(const Json& layer, size_t colour, double floor) {
  constexpr size_t kFirst = 16, kOthers = 48;
  Curve curve{.colour = colour, .has_dots = false};
  const auto places = spectra_of(layer);
  const size_t step = places.size() > kFirst + kOthers ? (places.size() - kFirst) / kOthers : 1;
  for (size_t i = 0; i < places.size(); i += i < kFirst ? 1 : step) {
    const Spread spread(places[i]);
    const auto from_floor = [&](double value) { return std::max(value, floor); };
    curve.points.emplace_back(static_cast<double>(i + 1), from_floor(spread.mean));
    curve.ranges.emplace_back(from_floor(spread.least), from_floor(spread.most));
  }
  return curve;
}

double largest_singular_value(const std::vector<Inspected>& networks) {
  double largest = 0;
  for (const Inspected& network : networks) {
    for (const Json& layer : network.layers) {
      for (const auto& place : spectra_of(layer)) {
        largest = std::max(largest, Spread(place).most);
      }
    }
  }
  return largest;
}

std::string spectra(const std::vector<Inspected>& networks) {
  constexpr double kNoise = 1e-6;  // of the largest: what float32 leaves
  const double floor = kNoise * largest_singular_value(networks);
  std::vector<Panel> blocks;
  for (size_t n = 0; n < networks.size(); ++n) {
    size_t block = 0;
    for (size_t i = 0; i < networks[n].layers.size(); ++i) {
      const Json& layer = networks[n].layers[i];
      Curve curve = spectrum_curve(layer, n, floor);
      if (curve.points.empty()) continue;
      if (block == blocks.size()) {
        const double rank = Spread(numbers_at(layer, "attention_rank")).mean;
        blocks.push_back({layer_name(networks[n].layers, i),
                          std::isnan(rank) ? "" : fmt::format("rank {:.1f}", rank),
                          {}});
      }
      blocks[block++].curves.push_back(std::move(curve));
    }
  }
  const std::string pictures = panels(blocks, {"singular value"}, {"size", /*is_log=*/true});
  if (pictures.empty()) return "";
  return "<h3>Singular values of attention</h3>" +
         sentence(fmt::format(
             "Of each block, largest first, on a logarithmic scale; the band is the range of the "
             "heads. The steeper, the fewer patterns attention has. What is below a millionth of "
             "the largest is drawn there.{}",
             networks.size() > 1 ? fmt::format(" Ranks are those of {}.", networks[0].name) : "")) +
         pictures;
}

}  // namespace

std::string attention_section(const std::vector<Inspected>& networks) {
  const std::string text = plots(entropies(networks) + ranks(networks)) + spectra(networks);
  return text.empty() ? "" : "<h2>Attention</h2>" + text;
}

}  // namespace adjoin::report
