// adjoin convert: a checkpoint of any format and layout as one safetensors file.
#include <iostream>
#include <sstream>

#include "adjoin/cli/arguments.h"
#include "adjoin/cli/model_options.h"
#include "adjoin/core/table.h"
#include "adjoin/core/text.h"
#include "adjoin/cost/cost.h"
#include "adjoin/models/load.h"
#include "adjoin/tensor/device.h"

namespace adjoin::cli {
namespace {

/// One name per line; an empty line at the end and a byte order mark do not count.
std::vector<std::string> read_class_names(const std::string& path, int64_t classes) {
  constexpr size_t kMostBytes = size_t{4} << 20;
  std::string text = read_text_file(path, kMostBytes);
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  std::istringstream lines(text);
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    names.push_back(line);
    if (names.size() > kMostListItems || !is_plain_text(line)) {
      throw Error(ErrorKind::kData,
                  fmt::format("{}: line {} is {}", path, names.size(),
                              is_plain_text(line) ? "one too many to store" : "no UTF-8 text"));
    }
  }
  while (!names.empty() && names.back().empty()) names.pop_back();
  if (static_cast<int64_t>(names.size()) != classes) {
    throw Error(ErrorKind::kData, fmt::format("{}: has {} lines, the network has {} classes", path,
                                              names.size(), classes));
  }
  return names;
}

bool is_finite(const torch::Tensor& tensor) { return tensor.isfinite().all().item<bool>(); }

/// Error(kNumeric) where a number is too large for the type.
Weights stored_as(const Weights& weights, torch::ScalarType dtype) {
  Weights result = weights.to(torch::kCPU, dtype);
  for (const auto& [name, tensor] : result) {
    if (!is_finite(tensor) && is_finite(weights.at(name))) {
      throw Error(ErrorKind::kNumeric,
                  fmt::format("{}: holds numbers too large for {}", name, c10::toString(dtype)));
    }
  }
  return result;
}

void note_not_finite(models::Model& model) {
  for (const auto& [name, tensor] : model.weights) {
    if (!is_finite(tensor)) model.notes.push_back(name + " holds NaN or infinity");
  }
}

}  // namespace

int run_convert(Args args) {
  CLI::App app(
      "Reads a checkpoint (.pth, .safetensors, a folder of the Hub; timm's or the authors' names), "
      "checks that it fits its network, and writes one .safetensors that says what it is. With "
      "--set "
      "model.mixer, model.norm or model.shortcut it becomes another network: what fits is kept, "
      "what "
      "is new is listed.",
      "convert");
  std::string in, out, layout_name = "timm", dtype_name, classes;
  ModelOptions options;
  bool is_json = false;
  app.add_option("IN", in, "the checkpoint, or a folder with model.safetensors and config.json")
      ->required();
  app.add_option("OUT", out, "the .safetensors to write")->required();
  app.add_option("--layout", layout_name, "names of the tensors")
      ->type_name("timm|official")
      ->capture_default_str();
  app.add_option("--dtype", dtype_name, "the type to store (without it, as it is)")
      ->type_name("float32|float64|float16|bf16");
  app.add_option("--classes", classes, "a text file with the name of a class in each line")
      ->type_name("FILE");
  add_model_options(app, options, /*has_head_reset=*/true);
  app.add_flag("--json", is_json, "print JSON");
  if (!parse(app, args)) return 0;
  check_output_path(out);
  io::Layout layout = io::Layout::kTimm;
  from_json(layout_name, layout, "--layout");
  const auto dtype = dtype_name.empty() ? torch::kFloat32 : parse_stored_dtype(dtype_name);

  models::Model model =
      models::load(in, {.open = options.open(),
                        .is_head_reset = options.is_head_reset,
                        .is_mixer_reset = changes_parts(options.open().overrides)});
  const std::string parent = models::content_hash(model.weights);
  note_not_finite(model);
  if (!dtype_name.empty()) model.weights = stored_as(model.weights, dtype);
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
    std::cout << fmt::format("{}: {}, {} tensors, {} parameters\n", one_line(out), spec.name,
                             model.weights.size(), with_commas(params));
  }
  return 0;
}

}  // namespace adjoin::cli
