#include "adjoin/cli/inspect_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <vector>

#include "adjoin/core/table.h"

namespace adjoin::cli {
namespace {

std::string number(const Json& value, const char* format = "{:.4g}") {
  const bool is_finite = value.is_number() && std::isfinite(value.get<double>());
  return is_finite ? fmt::format(fmt::runtime(format), value.get<double>()) : "-";
}

std::string text(const Json& value) { return value.get<std::string>(); }

std::string mean(const Json& values, const char* format) {
  if (!values.is_array() || values.empty()) return "-";
  double sum = 0;
  for (const Json& value : values) sum += value.get<double>();
  return fmt::format(fmt::runtime(format), sum / static_cast<double>(values.size()));
}

void print_notes_of(std::ostream& out, const Json& part) {
  for (const Json& note : part.at("notes")) out << "note: " << text(note) << '\n';
}

void print_layers(std::ostream& out, const Json& network) {
  out << fmt::format("{}: {} images, {}", text(network.at("model")), network.at("batch").dump(),
                     text(network.at("data")));
  if (network.at("loss").is_number()) {
    out << fmt::format(", loss {}, top1 {} %", number(network.at("loss")),
                       number(network.at("top1"), "{:.1f}"));
  }
  out << '\n';
  Table table({"layer", ">tokens", ">width", ">residual", ">composite", ">cosine", ">rank",
               ">entropy", ">activation", ">gradient", ">first part"});
  for (const Json& layer : network.at("layers")) {
    std::string part = "-";
    if (layer.contains("first_part")) {
      part = fmt::format("{} of 1/{}", number(layer.at("first_part").at("explained"), "{:.2f}"),
                         layer.at("first_part").at("alpha").get<int64_t>());
    }
    table.add({text(layer.at("name")), layer.at("tokens").dump(), layer.at("width").dump(),
               number(layer.at("residual_frobenius")), number(layer.at("residual_composite")),
               number(layer.at("token_cosine"), "{:.3f}"),
               number(layer.at("effective_rank"), "{:.1f}"),
               mean(layer.at("attention_entropy"), "{:.2f}"), number(layer.at("activation_norm")),
               number(layer.at("gradient_norm")), part});
  }
  out << table.text();
}

void print_comparison(std::ostream& out, const Json& compare) {
  out << fmt::format(
      "\nthe two: same answer on {} % of the images, total variation {}, KL {}, earth mover's "
      "distance of classes {}\n",
      number(compare.at("agreement"), "{:.1f}"), number(compare.at("total_variation")),
      number(compare.at("kl")), number(compare.at("class_emd")));
  Table table({"layer", ">earth mover's distance of tokens", ">of their length"});
  for (const Json& layer : compare.at("layers")) {
    table.add({text(layer.at("first")), number(layer.at("token_emd")),
               number(layer.at("token_emd_relative"), "{:.3f}")});
  }
  if (!compare.at("layers").empty()) out << table.text();
  print_notes_of(out, compare);
}

void print_depth(std::ostream& out, const Json& depth) {
  out << "\nresidual after every block, as a share of that of the tokens that enter the first\n";
  std::vector<std::string> heads = {"after"};
  for (const Json& curve : depth.at("curves")) heads.push_back(">" + text(curve.at("name")));
  Table table(heads);
  const size_t rows = depth.at("curves").at(0).at("diversity").size();
  for (size_t i = 0; i < rows; ++i) {
    std::vector<std::string> row = {i == 0 ? "tokens" : std::to_string(i - 1)};
    for (const Json& curve : depth.at("curves")) {
      row.push_back(number(curve.at("diversity").at(i), "{:.2e}"));
    }
    table.add(row);
  }
  out << table.text();
}

void print_paths(std::ostream& out, const Json& paths) {
  out << fmt::format("\npaths through attention, of one image; their sum is the output within {}\n",
                     number(paths.at("sum_error"), "{:.1e}"));
  Table table({"length", ">paths", ">norm", ">share", ">residual", ">of single ones", ">run again",
               ">top1 %"});
  for (size_t i = 0; i < paths.at("lengths").size(); ++i) {
    const Json& length = paths.at("lengths").at(i);
    const Json& again = paths.at("rerun").at(i);
    table.add({length.at("length").dump(), number(length.at("paths"), "{:.3g}"),
               number(length.at("norm")), number(length.at("share"), "{:.3f}"),
               number(length.at("residual")), number(length.at("sampled").at("residual")),
               number(again.at("residual")), number(again.at("top1"), "{:.1f}")});
  }
  out << table.text();
  for (const Json& length : paths.at("without_skips").at("lengths")) {
    out << fmt::format("without skips: {} paths of length {}, norm {}, residual {}\n",
                       number(length.at("paths"), "{:.3g}"), length.at("length").dump(),
                       number(length.at("norm")), number(length.at("residual")));
  }
  print_notes_of(out, paths);
}

/// A law over all layers.
struct LawSummary {
  std::string name;
  int64_t rows = 0;
  int64_t held = 0;
  double margin = INFINITY;  ///< the least
  std::string layer = "-";   ///< where that is
  bool is_proven = true;
  std::string note = {};
};

std::vector<LawSummary> summaries(const Json& bounds) {
  std::vector<LawSummary> all;
  for (const Json& row : bounds) {
    const std::string name = text(row.at("law"));
    auto found = std::find_if(all.begin(), all.end(),
                              [&](const LawSummary& law) { return law.name == name; });
    if (found == all.end()) found = all.insert(all.end(), LawSummary{.name = name});
    ++found->rows;
    if (row.at("holds").get<bool>()) ++found->held;
    if (!row.at("is_proven").get<bool>()) {
      found->is_proven = false;
      found->note = text(row.at("note"));
    }
    const Json& margin = row.at("margin_log10");
    if (!margin.is_number() || margin.get<double>() >= found->margin) continue;
    found->margin = margin.get<double>();
    found->layer = text(row.at("layer"));
  }
  return all;
}

void print_laws(std::ostream& out, const Json& laws) {
  out << "\nlaws and bounds; margins in powers of ten, every layer with --json\n";
  Table bounds({"law", ">layers", ">holds", ">least margin", "in", "proven"});
  for (const LawSummary& law : summaries(laws.at("bounds"))) {
    bounds.add({law.name, std::to_string(law.rows), std::to_string(law.held),
                number(law.margin, "{:.3g}"), law.layer,
                law.is_proven ? "yes" : "no: " + law.note});
  }
  out << bounds.text();
  out << "\nrandom projections of attention (theorem 2.3)\n";
  Table low({"layer", ">tokens", ">k", ">success, normal w", ">positive w", ">rank for 99 %",
             ">error at log2 n"});
  for (const Json& row : laws.at("low_rank")) {
    low.add({text(row.at("layer")), row.at("tokens").dump(), row.at("k").dump(),
             number(row.at("success_gaussian"), "{:.2f}"),
             number(row.at("success_positive"), "{:.2f}"), mean(row.at("rank_99"), "{:.1f}"),
             mean(row.at("svd_error"), "{:.3f}")});
  }
  out << low.text();
  out << "\ngradient of the last MLP at the start (theorem 4): exponents\n";
  Table slopes({"norms", ">of depth", ">of width"});
  for (const Json& row : laws.at("slopes")) {
    slopes.add({text(row.at("norm")), number(row.at("depth_slope"), "{:+.2f}"),
                number(row.at("width_slope"), "{:+.2f}")});
  }
  out << slopes.text();
  print_notes_of(out, laws);
}

}  // namespace

void print_inspection(std::ostream& out, const Json& result) {
  print_layers(out, result);
  if (result.contains("second")) {
    out << '\n';
    print_layers(out, result.at("second"));
    print_comparison(out, result.at("compare"));
  }
  if (result.contains("depth")) print_depth(out, result.at("depth"));
  if (result.contains("paths")) print_paths(out, result.at("paths"));
  if (result.contains("laws")) print_laws(out, result.at("laws"));
}

}  // namespace adjoin::cli
