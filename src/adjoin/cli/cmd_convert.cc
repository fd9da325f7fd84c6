// adjoin convert: a checkpoint of any format and layout as one safetensors file.
#include <fstream>
#include <iostream>

#include "adjoin/cli/arguments.h"
#include "adjoin/cli/model_options.h"
#include "adjoin/core/table.h"
#include "adjoin/cost/cost.h"
#include "adjoin/models/load.h"

namespace adjoin::cli {
namespace {

/// One name per line; an empty line at the end does not count.
std::vector<std::string> read_class_names(const std::string& path, int64_t classes) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorKind::kIo, path + ": cannot be read");
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    names.push_back(line);
    if (names.size() > 1'000'000)
      throw Error(ErrorKind::kData, path + ": more than 1,000,000 lines");
  }
  if (static_cast<int64_t>(names.size()) != classes) {
    throw Error(ErrorKind::kData, fmt::format("{}: has {} lines, the network has {} classes", path,
                                              names.size(), classes));
  }
  return names;
}

torch::ScalarType parse_stored_type(const std::string& text) {
  if (text == "float32") return torch::kFloat32;
  if (text == "float64") return torch::kFloat64;
  if (text == "float16" || text == "half") return torch::kFloat16;
  if (text == "bf16" || text == "bfloat16") return torch::kBFloat16;
  throw Error(ErrorKind::kUsage,
              fmt::format("--dtype: {} must be float32, float64, float16 or bf16", text));
}

}  // namespace

int run_convert(Args args) {
  CLI::App app(
      "Reads a checkpoint (.pth, .safetensors, a folder of the Hub; timm's or the authors' names), "
      "checks that it fits its network, and writes one .safetensors that says what it is.",
      "convert");
  std::string in, out, layout_name = "timm", dtype_name, classes;
  ModelOptions options;
  bool is_json = false;
  app.add_option("IN", in, "the checkpoint, or a folder with model.safetensors and config.json")
      ->required();
  app.add_option("OUT", out, "the .safetensors to write")->required();
  app.add_option("--layout", layout_name, "names of the tensors: timm or official")
      ->capture_default_str();
  app.add_option("--dtype", dtype_name, "float32, float64, float16 or bf16 (as it is)");
  app.add_option("--classes", classes, "a text file with the name of a class in each line")
      ->type_name("FILE");
  add_model_options(app, options, /*has_head_reset=*/true);
  app.add_flag("--json", is_json, "print JSON");
  if (!parse(app, args)) return 0;
  check_output_path(out);
  io::Layout layout = io::Layout::kTimm;
  from_json(layout_name, layout, "--layout");

  io::ModelFile file = io::open_model(in, options.open());
  const std::string parent = io::content_hash(file.content);
  models::Model model = models::load(std::move(file), options.is_head_reset);
  if (!dtype_name.empty()) {
    model.weights = model.weights.to(torch::kCPU, parse_stored_type(dtype_name));
  }
  if (!classes.empty()) {
    model.header.classes = read_class_names(classes, model.header.spec.num_classes);
  }
  model.header.provenance.parent = parent;
  models::save(out, model.header, model.weights, layout);

  print_notes(model.notes);
  const ModelSpec& spec = model.header.spec;
  const int64_t params = cost(spec).params;
  if (is_json) {
    print_json({{"file", out},
                {"model", spec.name},
                {"family", family_name(spec)},
                {"params", params},
                {"tensors", model.weights.size()},
                {"notes", model.notes}});
  } else {
    std::cout << fmt::format("{}: {}, {} tensors, {} parameters\n", out, spec.name,
                             model.weights.size(), with_commas(params));
  }
  return 0;
}

}  // namespace adjoin::cli
