#include "adjoin/report/inspect_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "adjoin/core/table.h"
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
      curve_of("one path walked alone, mean", rerun, field("residual"))};
  residuals[1].is_dashed = true;
  residuals[2].colour = 1;
  std::erase_if(residuals, [](const Curve& curve) { return curve_chart({curve}, {}, {}).empty(); });
  Curve top1 = curve_of("top-1", rerun, field("top1"));
  top1.colour = 1;
  std::string text =
      plot("How large the paths of each length are",
           "The norm of the sum of all paths of a length. The sums of all lengths are parts of the "
           "output, which may cancel: their norms may exceed its own.",
           curve_chart(norms, length_axis(), axis_for(norms, "norm of the sum", 1))) +
      plot("How different their tokens are",
           "The residual of what the paths of a length give, as parts of the output and walked "
           "alone. At 0 all tokens are alike.",
           curve_chart(residuals, length_axis(), axis_for(residuals, "residual")));
  const std::string alone =
      plot("How good they are alone",
           "Top-1 of paths walked alone: of the sum of those drawn of a length, through the last "
           "norm and the head.",
           curve_chart({top1}, length_axis(), {"top-1 %", false, 0.5}));
  if (!alone.empty()) {  // two beside each other, or neither: the table has the share, too
    text += plot("Share of the norms",
                 "The norm of a length over the sum of the norms of all lengths. No share of the "
                 "output, in which parts may cancel.",
                 curve_chart({curve_of("share", lengths, field("share"))}, length_axis(),
                             {"share of the norms", false, 0.02})) +
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
  DenseTable table({"length", "paths", "norm", "residual", "share of the norms",
                    "one path: residual", "measured on", "walked alone: residual",
                    "walked alone: top-1 %"});
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

/// "6", or "4 to 8" where layers differ; empty where nothing says it.
std::string heads_of(const Json& paths) {
  const Spread heads(numbers_at(paths, "heads"));
  if (std::isnan(heads.least)) return count_cell(number_at(paths, "heads"));
  if (heads.least == heads.most) return count_cell(heads.least);
  return fmt::format("{} to {}", count_cell(heads.least), count_cell(heads.most));
}

std::string about(const Json& paths) {
  std::string text;
  const auto layers = number_at(paths, "layers");
  const std::string heads = heads_of(paths);
  if (layers && !heads.empty()) {
    text += fmt::format(
        "A path goes through each of the {:g} layers by one of {} heads or by the skip around "
        "them; its length is the number of heads. ",
        *layers, heads);
  }
  if (const auto image = number_at(paths, "image")) {
    text += fmt::format("Seen with image {:g} of the batch. ", *image);
  }
  if (const std::string norms = text_at(paths, "norms"); !norms.empty()) {
    text += fmt::format("Norms: {}. ", norms);
  }
  if (const auto error = number_at(paths, "sum_error")) {
    const auto constant = number_at(paths, "constant_norm");
    text += fmt::format(
        "All paths together{} give the output to within {:.2g}. ",
        constant ? fmt::format(" and what biases add, of norm {},", short_number(*constant)) : "",
        *error);
  }
  return text;
}

/// "Without skips": all paths have the same length then.
std::string without_skips(const Json& paths) {
  std::string text;
  for (const Json& one : list_at(object_at(paths, "without_skips"), "lengths")) {
    const auto norm = number_at(one, "norm");
    const auto residual = number_at(one, "residual");
    if (!norm || !residual) continue;
    const auto length = number_at(one, "length");
    const std::string count = count_cell(number_at(one, "paths"));
    text +=
        fmt::format("Without skips the sum of all {}{}paths{} has norm {} and residual {}. ", count,
                    count.empty() ? "" : " ", length ? fmt::format(" of length {:g}", *length) : "",
                    short_number(*norm), short_number(*residual));
  }
  return text;
}

/// What `rerun` measures.
std::string about_walks(const Json& paths) {
  if (list_at(paths, "rerun").empty()) return "";
  return "Walked alone, a path is a network of its own: one head of each block it goes through, "
         "nothing beside, attention that looks at what the path itself has made, and a norm "
         "without weights after each.";
}

std::string introduction(const Json& paths) {
  std::string text;
  for (const std::string& part : {about(paths), without_skips(paths), about_walks(paths)}) {
    if (!part.empty()) text += sentence(part);
  }
  return text;
}

constexpr double kLeastVariety = 1e-30;  // less would leave no room for the rest

/// A field of each kind of network over the blocks; what is less than `least` is drawn there.
std::vector<Curve> depth_curves(const Json& kinds, const char* field, double least) {
  std::vector<Curve> curves;
  for (const Json& one : kinds) {
    Curve curve{.name = text_at(one, "name"), .colour = curves.size()};
    curve.is_dashed = curves.size() >= 8;  // colours come round again
    if (curve.name.empty()) curve.name = fmt::format("curve {}", curves.size());
    const std::vector<double> values = numbers_at(one, field);
    for (size_t i = 0; i < values.size(); ++i) {
      const bool is_cut = values[i] >= 0 && values[i] < least;
      curve.points.emplace_back(static_cast<double>(i), is_cut ? least : values[i]);
      curve.titles.push_back(
          fmt::format("{}, {}: {}", curve.name,
                      i == 0 ? "tokens" : "after " + so_many(static_cast<int64_t>(i), "block"),
                      std::isnan(values[i]) ? "-" : short_number(values[i])));
      curve.end = is_cut ? fmt::format("< {:.0e}", least) : "";
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace

std::string paths_section(const Json& paths) {
  const std::string text =
      introduction(paths) + notes(texts_at(paths, "notes")) + charts(paths) + table_of(paths);
  return text.empty() ? "" : "<h2>Paths through the heads</h2>" + text;
}

std::string depth_section(const Json& depth) {
  const Json& curves = list_at(depth, "curves");
  const std::vector<Curve> variety = depth_curves(curves, "diversity", kLeastVariety);
  const std::vector<Curve> shares = depth_curves(curves, "residual_frobenius", 0);
  const bool is_cut = std::any_of(variety.begin(), variety.end(), [](const Curve& curve) {
    return std::any_of(curve.points.begin(), curve.points.end(),
                       [](const Place& point) { return point.second == kLeastVariety; });
  });
  const Axis x{"blocks gone through", false, 0, /*is_whole=*/true};
  const std::string charts =
      plot("How much of the tokens' variety is left",
           fmt::format("The residual over that of the tokens that enter the first block, which is "
                       "what theory bounds.{}",
                       is_cut ? " What is below 1e-30 is drawn there." : ""),
           curve_chart(variety, x, {"residual / of the input", /*is_log=*/true}, Legend::kAlways)) +
      plot("As a share of the tokens",
           "The residual over the norm of the tokens after the same block. Near 1e-16 it is "
           "rounding.",
           curve_chart(shares, x, axis_for(shares, "residual / tokens"), Legend::kAlways));
  if (charts.empty()) return "";
  return "<h2>What keeps tokens apart</h2>" +
         sentence(
             "The residual, what is left of the tokens when their mean is taken away, after each "
             "block of networks that have only some of the parts. At 0 all tokens are alike.") +
         plots(charts);
}

}  // namespace adjoin::report
