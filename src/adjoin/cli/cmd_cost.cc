// adjoin cost: parameters, MACs and bytes of a network, in total and block by block.
#include <iostream>

#include "adjoin/cli/arguments.h"
#include "adjoin/cli/choice_options.h"
#include "adjoin/core/table.h"
#include "adjoin/cost/cost.h"

namespace adjoin::cli {
namespace {

void print_row(const char* what, const std::string& value, const std::string& more) {
  std::cout << fmt::format("  {:<20}{:>16}{}{}\n", what, value, more.empty() ? "" : "  ", more);
}

/// The small network's share of the large one.
void print_share(const Cost& small, const Cost& large) {
  const auto row = [](const char* what, int64_t part, int64_t whole) {
    print_row(what, fmt::format("{:.3f}x", static_cast<double>(part) / static_cast<double>(whole)),
              "of " + with_commas(whole));
  };
  std::cout << "beside the large network\n";
  row("parameters", small.params, large.params);
  row("MACs", small.macs.total(), large.macs.total());
  std::cout << '\n';
}

void print_cost(const std::string& name, const Cost& counted) {
  const auto row = print_row;
  const int64_t fixed = counted.params - counted.params_trainable;
  std::cout << name << '\n';
  row("parameters", with_commas(counted.params),
      fixed == 0 ? "" : with_commas(fixed) + " of them fixed");
  row("MACs", with_commas(counted.macs.total()), "one image, attention products included");
  row("  without attention", with_commas(counted.macs.without_attention()), "");
  row("weights", short_bytes(static_cast<double>(counted.weight_bytes)), "float32");
  row("activations", short_bytes(static_cast<double>(counted.activation_bytes)),
      "float32, all values one image makes");
  Table table({"block", ">heads", ">hidden", ">params", ">MACs", ">share"});
  for (const BlockCost& block : counted.blocks) {
    const double share =
        100.0 * static_cast<double>(block.macs) / static_cast<double>(counted.macs.total());
    table.add({block.name, std::to_string(block.heads), std::to_string(block.hidden),
               with_commas(block.params), short_count(static_cast<double>(block.macs)),
               fmt::format("{:.1f} %", share)});
  }
  std::cout << '\n' << table.text();
}

}  // namespace

int run_cost(Args args) {
  CLI::App app("Parameters, MACs and bytes of a network, in total and block by block.", "cost");
  std::string model;
  std::vector<std::string> sets;
  ChoiceOptions choice;
  bool is_json = false;
  app.add_option("MODEL", model, "a name of the catalog, a .json file with a spec, or a model file")
      ->required();
  add_set_option(app, sets);
  add_choice_options(app, choice);
  app.add_flag("--json", is_json, "print JSON");
  if (!parse(app, args)) return 0;
  const ModelSpec spec = resolve_model(model, sets);
  const Cost large = cost(spec);
  const auto part = chosen_part(spec, choice);
  const Cost counted = part ? cost(part->spec) : large;
  if (is_json) {
    Json json = cost_to_json(spec.name, counted);
    if (part) json.update(cost_comparison(spec.name, large, counted));
    print_json(json);
  } else {
    if (part) print_share(counted, large);
    print_cost(spec.name, counted);
  }
  return 0;
}

}  // namespace adjoin::cli
