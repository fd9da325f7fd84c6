// adjoin extract: the small network inside a large one as a model file of its own.
#include <iostream>

#include "adjoin/cli/arguments.h"
#include "adjoin/cli/choice_options.h"
#include "adjoin/cli/model_options.h"
#include "adjoin/compress/importance.h"
#include "adjoin/core/table.h"
#include "adjoin/cost/cost.h"
#include "adjoin/data/inputs.h"
#include "adjoin/models/forward.h"
#include "adjoin/models/load.h"
#include "adjoin/models/slice.h"

namespace adjoin::cli {
namespace {

using compress::Order;

/// The importance that `--order taylor` measures on the user's images.
std::vector<compress::Importance> measured(const io::ModelHeader& header, const Weights& weights,
                                           const std::vector<std::string>& paths) {
  std::vector<torch::Tensor> images, labels;
  for (const std::string& path : paths) {
    for (const data::Input& input : data::read_inputs(path, header)) {
      images.push_back(input.image);
      const torch::NoGradGuard no_grad;
      labels.push_back(input.label
                           ? torch::tensor(*input.label)
                           : models::forward(header.spec, weights, input.image.unsqueeze(0))
                                 .logits()
                                 .argmax(1)
                                 .squeeze(0));  // without a label, what the network itself says
    }
  }
  if (images.empty()) throw Error(ErrorKind::kData, "--order taylor: the inputs hold no image");
  return compress::taylor(header.spec, weights, torch::stack(images), torch::stack(labels));
}

Weights ordered(const models::Model& model, Order order, const std::vector<std::string>& inputs) {
  const ModelSpec& spec = model.header.spec;
  if (order == Order::kNone) return model.weights;
  if (order == Order::kMagnitude) {
    return compress::reordered(spec, model.weights, compress::magnitude(spec, model.weights));
  }
  const Weights weights = model.weights.to(torch::kCPU, torch::kFloat32);
  return compress::reordered(spec, model.weights, measured(model.header, weights, inputs));
}

Order parse_order(const std::string& text, const ChoiceOptions& choice,
                  const std::vector<std::string>& inputs) {
  Order order = Order::kNone;
  from_json(text, order, "--order");
  if (order != Order::kNone && choice.geometry == "narrow") {
    throw Error(ErrorKind::kUsage,
                "--order: geometry narrow also cuts the residual stream, whose channels cannot be "
                "put in order; use geometry kept");
  }
  if ((order == Order::kTaylor) == inputs.empty()) {
    throw Error(ErrorKind::kUsage, inputs.empty() ? "--order taylor needs --inputs, some images"
                                                  : "--inputs is for --order taylor");
  }
  return order;
}

}  // namespace

int run_extract(Args args) {
  CLI::App app("Cuts the small network out of a large one and writes it as a model of its own.",
               "extract");
  std::string in, out, order_name = "none";
  std::vector<std::string> inputs;
  ModelOptions options;
  ChoiceOptions choice;
  bool is_json = false;
  app.add_option("FILE", in, "the large network: a model file, .pth or Hub folder")->required();
  app.add_option("OUT", out, "the .safetensors to write")->required();
  add_choice_options(app, choice);
  app.add_option("--order", order_name,
                 "put the most important heads and hidden units first: none (an adjoined network "
                 "has them so), magnitude or taylor")
      ->type_name("none|magnitude|taylor")
      ->capture_default_str();
  app.add_option(
         "--inputs", inputs,
         "images for --order taylor: JPEG, PNG, or .safetensors with `input` (B, C, H, W) and, "
         "where known, `labels` (B)")
      ->type_name("INPUT");
  add_model_options(app, options, /*has_head_reset=*/true);
  app.add_flag("--json", is_json, "print JSON");
  if (!parse(app, args)) return 0;
  check_output_path(out);
  const Order order = parse_order(order_name, choice, inputs);

  io::ModelFile file = io::open_model(in, options.open());
  const auto part = chosen_part(file.header.spec, choice.text());
  if (!part) {
    throw Error(ErrorKind::kUsage,
                "extract: say which small network is meant: --alpha, --alphas or --keep");
  }
  const models::Model large =
      models::load(std::move(file), {.open = {}, .is_head_reset = options.is_head_reset});
  io::ModelHeader header = large.header;
  header.spec = part->spec;
  header.provenance.parent = models::content_hash(large.weights);
  models::save(out, header, models::copies(*part, ordered(large, order, inputs)));

  print_notes(large.notes);
  const Cost before = cost(large.header.spec);
  const Cost after = cost(part->spec);
  if (is_json) {
    Json json = {{"file", out}, {"order", order_name}, {"geometry", choice.geometry}};
    json.update(cost_to_json(part->spec.name, after));
    json.update(cost_comparison(large.header.spec.name, before, after));
    print_json(json);
  } else {
    Table table({"network", ">params", ">MACs", ">weights"});
    const auto row = [&](const std::string& name, const Cost& counted) {
      table.add({name, with_commas(counted.params), with_commas(counted.macs.total()),
                 short_bytes(static_cast<double>(counted.weight_bytes))});
    };
    row(one_line(in), before);
    row(one_line(out), after);
    std::cout << table.text();
  }
  return 0;
}

}  // namespace adjoin::cli
