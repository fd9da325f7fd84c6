#include "adjoin/report/inspect_paths.h"

#include <fmt/format.h>

#include <cmath>

#include "adjoin/report/axes.h"
#include "adjoin/report/curves.h"
#include "adjoin/report/html_parts.h"
#include "adjoin/report/json_parts.h"

namespace adjoin::report {
namespace {

Axis length_axis() { return {"length of a path", false, 0, /*is_whole=*/true}; }

/// A number of each length that `value_of` finds.
template <class ValueOf>
Curve curve_of(const std::string& name, const Json& lengths, ValueOf value_of) {
  Curve curve{.name = name};
  for (const Json& one : lengths) {
    const std::optional<double> length = number_at(one, "length");
    if (!length) continue;
    const std::optional<double> value = value_of(one);
    curve.points.emplace_back(*length, value.value_or(NAN));
    curve.titles.push_back(fmt::format("length {:g}: {}", *length, cell(value)));
  }
  return curve;
}

auto field(const char* name) {
  return [name](const Json& one) { return number_at(one, name); };
}

std::string charts(const Json& paths) {
  const Json& lengths = list_at(paths, "lengths");
  const Json& rerun = list_at(paths, "rerun");
  const std::vector<Curve> norms = {curve_of("norm", lengths, field("norm"))};
  std::vector<Curve> residuals = {
      curve_of("all paths together", lengths, field("residual")),
      curve_of("one path, mean", lengths,
               [](const Json& one) { return number_at(object_at(one, "sampled"), "residual"); }),
      curve_of("run again with these paths", rerun, field("residual"))};
  residuals[1].is_dashed = true;
  residuals[2].colour = 1;
  std::erase_if(residuals, [](const Curve& curve) { return curve_chart({curve}, {}, {}).empty(); });
  Curve top1 = curve_of("top-1", rerun, field("top1"));
  top1.colour = 1;
  std::string text =
      plot("How much paths of each length give",
           "The norm of the sum of all paths of a length. Short paths carry most of the output "
           "where the line falls.",
           curve_chart(norms, length_axis(), axis_for(norms, "norm of the sum", 1))) +
      plot("How different their tokens are",
           "The residual of what the paths of a length give: the longer a path, the more alike the "
           "tokens at its end. At 0 they are all alike.",
           curve_chart(residuals, length_axis(), axis_for(residuals, "residual")));
  const std::string alone =
      plot("How good they are alone",
           "Top-1 of the network run again with the paths of one length and no others.",
           curve_chart({top1}, length_axis(), {"top-1 %", false, 0.5}));
  if (!alone.empty()) {  // two beside each other, or neither: the table has the share, too
    text += plot("Their share of the output", "Of all paths together.",
                 curve_chart({curve_of("share", lengths, field("share"))}, length_axis(),
                             {"share of the output", false, 0.02})) +
            alone;
  }
  return plots(text);
}

/// The entry of another list for the same length.
const Json& same_length(const Json& list, const Json& one) {
  static const Json nothing;
  for (const Json& other : list) {
    const auto length = number_at(other, "length");
    if (length && length == number_at(one, "length")) return other;
  }
  return nothing;
}

std::string table_of(const Json& paths) {
  DenseTable table({"length", "paths", "norm", "residual", "share of the output",
                    "one path: residual", "measured on", "run again: residual",
                    "run again: top-1 %"});
  for (const Json& one : list_at(paths, "lengths")) {
    const Json& sampled = object_at(one, "sampled");
    const Json& again = same_length(list_at(paths, "rerun"), one);
    std::string drawn = count_cell(number_at(sampled, "paths"));
    if (!drawn.empty()) drawn += truth_at(sampled, "is_all") == true ? ", all" : ", drawn";
    table.add({count_cell(number_at(one, "length")), count_cell(number_at(one, "paths")),
               cell(number_at(one, "norm")), cell(number_at(one, "residual")),
               cell(number_at(one, "share")), cell(number_at(sampled, "residual")), drawn,
               cell(number_at(again, "residual")), cell(number_at(again, "top1"))});
  }
  return table.html();
}

std::string about(const Json& paths) {
  std::string text;
  const auto layers = number_at(paths, "layers");
  const auto heads = number_at(paths, "heads");
  if (layers && heads) {
    text += fmt::format(
        "A path goes through each of the {:g} layers by one of {:g} heads or by the skip around "
        "them; its length is the number of heads. ",
        *layers, *heads);
  }
  if (const auto image = number_at(paths, "image")) {
    text += fmt::format("Seen with image {:g} of the batch. ", *image);
  }
  if (const std::string norms = text_at(paths, "norms"); !norms.empty()) {
    text += fmt::format("Norms: {}. ", norms);
  }
  if (const auto error = number_at(paths, "sum_error")) {
    text += fmt::format("All paths together give the output to within {:.2g}. ", *error);
  }
  const Json& bare = object_at(paths, "without_skips");
  if (const auto residual = number_at(bare, "residual")) {
    text += fmt::format(
        "Without skips{} the residual is {}{}.",
        number_at(bare, "paths") ? fmt::format(", {} paths,", count_cell(number_at(bare, "paths")))
                                 : "",
        short_number(*residual),
        number_at(bare, "norm") ? fmt::format(" and the norm {}", cell(number_at(bare, "norm")))
                                : "");
  }
  return text.empty() ? "" : sentence(text);
}

}  // namespace

std::string paths_section(const Json& paths) {
  const std::string text =
      about(paths) + sentences(texts_at(paths, "notes")) + charts(paths) + table_of(paths);
  return text.empty() ? "" : "<h2>Paths through the heads</h2>" + text;
}

std::string depth_section(const Json& depth) {
  struct Norm {
    const char* field;
    const char* title;
  };
  std::string charts;
  for (const Norm& norm : {Norm{"residual_frobenius", "Frobenius norm"},
                           Norm{"residual_composite", "Composite norm"}}) {
    std::vector<Curve> curves;
    for (const Json& one : list_at(depth, "curves")) {
      Curve curve{.name = text_at(one, "name"), .colour = curves.size()};
      curve.is_dashed = curves.size() >= 8;  // colours come round again
      if (curve.name.empty()) curve.name = fmt::format("curve {}", curves.size());
      const std::vector<double> values = numbers_at(one, norm.field);
      for (size_t i = 0; i < values.size(); ++i) {
        curve.points.emplace_back(static_cast<double>(i), values[i]);
        curve.titles.push_back(fmt::format("block {}: {}", i, short_number(values[i])));
      }
      curves.push_back(std::move(curve));
    }
    charts += plot(norm.title, "",
                   curve_chart(curves, {"block", false, 0, /*is_whole=*/true},
                               axis_for(curves, "residual / tokens"), Legend::kAlways));
  }
  if (charts.empty()) return "";
  return "<h2>What keeps tokens apart</h2>" +
         sentence(
             "The residual after each block of networks that have only some of the parts. "
             "Attention alone makes all tokens alike; skips and MLPs work against it.") +
         plots(charts);
}

}  // namespace adjoin::report
