#include "adjoin/report/inspect_section.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "adjoin/report/curves.h"
#include "adjoin/report/html_parts.h"

namespace adjoin::report {
namespace {

constexpr double kRoom = 0.03;  // small changes should look small

using Field = std::optional<double> LayerView::*;

/// A network as it was seen, epoch after epoch.
struct Seen {
  std::string name;
  size_t colour = 0;
  std::vector<const InspectionView*> epochs;

  const InspectionView& last() const { return *epochs.back(); }
};

std::vector<Seen> by_network(const std::vector<InspectionView>& all,
                             const std::vector<NetworkView>& networks) {
  std::vector<Seen> result;
  for (const InspectionView& one : all) {
    auto place = std::find_if(result.begin(), result.end(),
                              [&](const Seen& seen) { return seen.name == one.network; });
    if (place == result.end()) {
      const auto known =
          std::find_if(networks.begin(), networks.end(),
                       [&](const NetworkView& network) { return network.name == one.network; });
      // One that the run does not know: a colour of its own while there is one.
      const size_t colour = known == networks.end()
                                ? (networks.size() > 1 ? networks.size() : 0) + result.size()
                                : static_cast<size_t>(known - networks.begin());
      place = result.insert(place, {one.network, std::min<size_t>(colour, 7), {}});
    }
    place->epochs.push_back(&one);
  }
  for (Seen& seen : result) {
    std::stable_sort(seen.epochs.begin(), seen.epochs.end(),
                     [](const auto* a, const auto* b) { return a->epoch < b->epoch; });
  }
  return result;
}

/// A line per layer that the last epoch has, the later the darker; the first and the last named.
std::vector<Curve> layer_curves(const Seen& seen, Field field) {
  const std::vector<LayerView>& layers = seen.last().layers;
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < layers.size(); ++i) places.emplace(layers[i].name, i);
  std::vector<Curve> curves(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    const double depth =
        layers.size() == 1 ? 1 : static_cast<double>(i) / static_cast<double>(layers.size() - 1);
    curves[i].hint = layers[i].name;
    curves[i].colour = seen.colour;
    curves[i].has_dots = false;
    curves[i].strength = 0.2 + 0.8 * depth;
    if (i == 0 || i + 1 == layers.size()) curves[i].name = layers[i].name;
  }
  for (const InspectionView* epoch : seen.epochs) {
    for (const LayerView& layer : epoch->layers) {
      const auto place = places.find(layer.name);
      if (place == places.end()) continue;
      curves[place->second].points.emplace_back(static_cast<double>(epoch->epoch + 1),
                                                (layer.*field).value_or(NAN));
    }
  }
  return curves;
}

/// One kind of axis for all networks, so that their charts can be compared.
Axis common_axis(const std::vector<Seen>& all, Field field, const std::string& label) {
  std::vector<Curve> together;
  for (const Seen& seen : all) {
    for (Curve& curve : layer_curves(seen, field)) together.push_back(std::move(curve));
  }
  return {label, axis_for(together, label).is_log, kRoom};
}

std::string epoch_charts(const std::vector<Seen>& all) {
  const Axis x{"epoch", false, 0, /*is_whole=*/true};
  const Axis residual = common_axis(all, &LayerView::residual, "residual / tokens");
  const Axis cosine = common_axis(all, &LayerView::cosine, "cosine of tokens");
  std::string text;
  for (const Seen& seen : all) {
    if (seen.epochs.size() < 2) continue;
    text += plot(seen.name + ": how different its tokens are",
                 "The residual, what is left of the tokens without their mean as a share of their "
                 "norm; at 0 all are alike. A line per layer: the later, the darker.",
                 curve_chart(layer_curves(seen, &LayerView::residual), x, residual)) +
            plot(seen.name + ": which way they point",
                 "The mean cosine of two tokens of an image, at 1 all point the same way. A line "
                 "per layer: the later, the darker.",
                 curve_chart(layer_curves(seen, &LayerView::cosine), x, cosine));
  }
  return plots(text);
}

std::string over_depth(const std::vector<Seen>& all, Field field, const Axis& y) {
  std::vector<Curve> curves;
  for (const Seen& seen : all) {
    Curve curve{.name = seen.name, .colour = seen.colour};
    const std::vector<LayerView>& layers = seen.last().layers;
    for (size_t i = 0; i < layers.size(); ++i) {
      curve.points.emplace_back(static_cast<double>(i), (layers[i].*field).value_or(NAN));
      curve.titles.push_back(
          fmt::format("{}, {}: {}", seen.name, layers[i].name, cell(layers[i].*field)));
    }
    curves.push_back(std::move(curve));
  }
  const bool is_log = y.is_log || axis_for(curves, "").is_log;
  return curve_chart(curves, {"layer", false, 0, /*is_whole=*/true}, {y.label, is_log, y.room},
                     Legend::kAlways);
}

/// "Epoch 30, with 8 images."; several epochs where networks were seen last at different ones.
std::string when(const std::vector<Seen>& all) {
  std::set<int64_t> epochs, images;
  for (const Seen& seen : all) {
    epochs.insert(seen.last().epoch + 1);
    images.insert(seen.last().images);
  }
  const bool has_images = images.size() == 1 && *images.begin() > 0;
  return fmt::format("Epoch {}{}.", fmt::join(epochs, " and "),
                     has_images ? fmt::format(", with {} images", *images.begin()) : "");
}

}  // namespace

std::string inspect_section(const std::vector<InspectionView>& seen,
                            const std::vector<NetworkView>& networks) {
  std::vector<Seen> all = by_network(seen, networks);
  std::erase_if(all, [](const Seen& one) { return one.last().layers.empty(); });
  if (all.empty()) return "";
  const std::string depth =
      plot("How different the tokens are", "The residual after each layer.",
           over_depth(all, &LayerView::residual, {"residual / tokens", false, kRoom})) +
      plot("Which way they point", "The mean cosine of two tokens.",
           over_depth(all, &LayerView::cosine, {"cosine of tokens", false, kRoom})) +
      plot("How many directions they use", "The effective rank of the tokens.",
           over_depth(all, &LayerView::rank, {"effective rank"})) +
      plot("Gradients", "The norm of the loss's gradient at what a layer gives out.",
           over_depth(all, &LayerView::gradient, {"norm of gradients", /*is_log=*/true}));
  if (depth.empty()) return "";
  return epoch_charts(all) + "<h3>Over depth</h3>" + sentence(when(all)) + plots(depth);
}

}  // namespace adjoin::report
