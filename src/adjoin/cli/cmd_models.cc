// adjoin models: the catalog with its costs, or one spec in full.
#include <iostream>

#include "adjoin/cli/arguments.h"
#include "adjoin/cli/model_options.h"
#include "adjoin/core/table.h"
#include "adjoin/cost/cost.h"
#include "adjoin/spec/catalog.h"

namespace adjoin::cli {
namespace {

Json catalog_json() {
  Json models = Json::array();
  for (const std::string& name : catalog_names()) {
    const ModelSpec spec = catalog_spec(name);
    const Cost counted = cost(spec);
    models.push_back({{"name", name},
                      {"family", family_name(spec)},
                      {"img_size", spec.img_size},
                      {"params", counted.params},
                      {"macs", counted.macs.total()}});
  }
  return {{"models", models}};
}

void print_catalog() {
  Table table({"model", "family", ">image", ">blocks", ">params", ">MACs", ">without attention"});
  for (const std::string& name : catalog_names()) {
    const ModelSpec spec = catalog_spec(name);
    const Cost counted = cost(spec);
    table.add({name, std::string(family_name(spec)), std::to_string(spec.img_size),
               std::to_string(counted.blocks.size()), with_commas(counted.params),
               short_count(static_cast<double>(counted.macs.total())),
               short_count(static_cast<double>(counted.macs.without_attention()))});
  }
  std::cout << table.text();
}

}  // namespace

int run_models(Args args) {
  CLI::App app("The catalog: every named model with its cost, or one of them in full.", "models");
  std::string model;
  ModelOptions options;
  bool is_json = false;
  const CLI::Option* named = app.add_option(
      "MODEL", model, "print the whole spec of this model, or of a model file, as JSON");
  add_model_options(app, options, /*has_head_reset=*/false);
  app.add_flag("--json", is_json, "print JSON");
  if (!parse(app, args)) return 0;
  if (!named->empty()) {
    print_json(spec_to_json(resolve_model(model, options)));
  } else if (!options.sets.empty() || !options.model.empty()) {
    throw Error(ErrorKind::kUsage, "models: --set and --model need a MODEL");
  } else if (is_json) {
    print_json(catalog_json());
  } else {
    print_catalog();
  }
  return 0;
}

}  // namespace adjoin::cli
