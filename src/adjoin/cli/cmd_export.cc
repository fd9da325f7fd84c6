// adjoin export: a model as an ONNX file, computed again from the file before it is called done.
#include <iostream>

#include "adjoin/cli/arguments.h"
#include "adjoin/cli/checked_export.h"
#include "adjoin/cli/networks.h"
#include "adjoin/cli/run_command.h"
#include "adjoin/core/table.h"

namespace adjoin::cli {
namespace {

void check_name(const std::string& path) {
  if (!path.ends_with(".onnx")) {
    throw Error(ErrorKind::kUsage, fmt::format("{}: the file to write must end in .onnx", path));
  }
}

}  // namespace

int run_export(Args args) {
  CLI::App app(
      "Writes a model as ONNX: opset 17, any batch size, class names and preprocessing inside.",
      "export");
  std::string in, out;
  ModelOptions options;
  ChoiceOptions choice;
  io::OnnxOptions onnx;
  bool is_json = false;
  app.add_option("FILE", in,
                 "a model file, .pth or Hub folder; or a name of the catalog, with start values")
      ->required();
  app.add_option("OUT", out, "the .onnx to write")->required();
  app.add_flag("--with-preprocessing", onnx.has_preprocessing,
               "the graph takes bytes (batch, height, width, channels) and normalises them; else "
               "normalised floats (batch, channels, height, width)");
  app.add_flag("--external-data", onnx.has_external_data,
               "weights in a second file, OUT.data; always so above 2 GB");
  add_choice_options(app, choice);
  add_model_options(app, options, /*has_head_reset=*/false);
  app.add_flag("--json", is_json, "print JSON");
  if (!parse(app, args)) return 0;
  check_name(out);
  io::require_onnx();

  models::Model model = load_network(in, options, choice.text());
  const StopSignal stop;  // what is half done is taken away, not left behind
  const auto written = [&]() -> std::optional<CheckedExport> {
    try {
      return checked_export(model, out, onnx, stop);
    } catch (const Stopped&) {
      return std::nullopt;
    }
  }();
  if (!written) return 128 + stop.received();
  print_notes(model.notes);
  if (is_json) {
    print_json({{"file", out},
                {"bytes", written->bytes},
                {"input", onnx.has_preprocessing ? "pixels" : "images"},
                {"images", written->images},
                {"difference", written->difference},
                {"agree", written->agree}});
  } else {
    Table table({"file", ">bytes", ">logits off by", ">same answer"});
    table.add({one_line(out), short_bytes(static_cast<double>(written->bytes)),
               fmt::format("{:.1e}", written->difference),
               fmt::format("{} of {} images", written->agree, written->images)});
    std::cout << table.text();
  }
  return 0;
}

}  // namespace adjoin::cli
