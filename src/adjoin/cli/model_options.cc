#include "adjoin/cli/model_options.h"

#include <algorithm>
#include <array>
#include <iostream>

#include "adjoin/cli/arguments.h"

namespace adjoin::cli {

io::OpenOptions ModelOptions::open() const { return {model, parse_overrides(sets)}; }

void add_model_options(CLI::App& app, ModelOptions& options, bool has_head_reset) {
  app.add_option("--model", options.model,
                 "which model a foreign file holds: a name of the catalog, or a .json with a spec "
                 "(without it, its tensors tell)")
      ->type_name("NAME|FILE");
  add_set_option(app, options.sets);
  if (has_head_reset) {
    app.add_flag("--reset-head", options.is_head_reset,
                 "start a new classifier where the file's has another number of classes");
  }
}

bool is_checkpoint_path(const std::string& text) {
  constexpr std::array<std::string_view, 7> kEndings = {".safetensors", ".pth",  ".pt", ".bin",
                                                        ".tar",         ".ckpt", ".th"};
  if (text.ends_with(".json")) return false;
  return text.find('/') != std::string::npos ||
         std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return text.ends_with(ending); });
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::cerr << "adjoin: note: " << one_line(note) << '\n';
}

void check_output_path(const std::string& path) {
  if (!path.ends_with(".safetensors")) {
    throw Error(ErrorKind::kUsage, path + ": models are written as .safetensors; name it so");
  }
}

}  // namespace adjoin::cli
