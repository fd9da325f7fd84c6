// adjoin cost: parameters, MACs and bytes of a network, in total and block by block.
#include <iostream>

#include "adjoin/cli/arguments.h"
#include "adjoin/cli/choice_options.h"
#include "adjoin/cli/model_options.h"
#include "adjoin/core/table.h"
#include "adjoin/cost/cost.h"

namespace adjoin::cli {
namespace {

void print_row(const char* what, const std::string& value, const std::string& more) {
  std::cout << fmt::format("  {:<20}{:>16}{}{}\n", what, value, more.empty() ? "" : "  ", more);
}

/// "0.283x of 87,768,224": a small network's share; nothing where there is no large one.
std::string share(int64_t part, const Cost* large, int64_t whole) {
  if (large == nullptr) return "";
  return fmt::format("{:.3f}x of {}", static_cast<double>(part) / static_cast<double>(whole),
                     with_commas(whole));
}

/// `large` is the network it is a part of, if it is.
void print_cost(const std::string& name, const Cost& counted, const Cost* large) {
  const int64_t fixed = counted.params - counted.params_trainable;
  const int64_t macs = counted.macs.total();
  std::vector<std::string> about_params = {share(counted.params, large, large ? large->params : 0)};
  if (fixed != 0) about_params.push_back(with_commas(fixed) + " of them fixed");
  std::vector<std::string> about_macs = {share(macs, large, large ? large->macs.total() : 0),
                                         "one image, attention products included"};
  for (auto* about : {&about_params, &about_macs}) std::erase(*about, "");
  std::cout << name << (large == nullptr ? "" : ", the small network inside it") << '\n';
  print_row("parameters", with_commas(counted.params), join(about_params));
  print_row("MACs", with_commas(macs), join(about_macs));
  print_row("  without attention", with_commas(counted.macs.without_attention()), "");
  print_row("weights", short_bytes(static_cast<double>(counted.weight_bytes)), "float32");
  print_row("activations", short_bytes(static_cast<double>(counted.activation_bytes)),
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
  ModelOptions options;
  ChoiceOptions choice;
  bool is_json = false;
  app.add_option("MODEL", model, "a name of the catalog, a .json file with a spec, or a model file")
      ->required();
  add_model_options(app, options, /*has_head_reset=*/false);
  add_choice_options(app, choice);
  app.add_flag("--json", is_json, "print JSON");
  if (!parse(app, args)) return 0;
  const ModelSpec spec = resolve_model(model, options);
  const Cost large = cost(spec);
  const auto part = chosen_part(spec, choice.text());
  const Cost counted = part ? cost(part->spec) : large;
  if (is_json) {
    Json json = cost_to_json(spec.name, counted);
    if (part) json.update(cost_comparison(spec.name, large, counted));
    print_json(json);
  } else {
    print_cost(spec.name, counted, part ? &large : nullptr);
  }
  return 0;
}

}  // namespace adjoin::cli
