#include "adjoin/cli/model_options.h"

#include <algorithm>
#include <array>
#include <iostream>

#include "adjoin/cli/arguments.h"
#include "adjoin/core/place.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/named.h"

namespace adjoin::cli {
bool is_checkpoint_path(const std::string& text) {
  if (is_spec_file(text)) return false;
  constexpr std::array<std::string_view, 7> kEndings = {".safetensors", ".pth",  ".pt", ".bin",
                                                        ".tar",         ".ckpt", ".th"};
  const bool is_spelt_so = text.find('/') != std::string::npos ||
                           std::any_of(kEndings.begin(), kEndings.end(),
                                       [&](const auto& ending) { return text.ends_with(ending); });
  if (is_spelt_so) return true;
  const std::vector<std::string> names = catalog_names();
  return std::find(names.begin(), names.end(), text.substr(0, text.find('.'))) == names.end() &&
         place_at(text) != Place::kNothing;
}

io::OpenOptions ModelOptions::open() const { return {model, parse_overrides(sets)}; }

void add_model_options(CLI::App& app, ModelOptions& options, bool has_head_reset) {
  app.add_option("--model", options.model,
                 "which model a foreign file holds: a name of the catalog, or a file with a spec "
                 "(without it, its tensors tell)")
      ->type_name("NAME|FILE");
  add_set_option(app, options.sets);
  if (has_head_reset) {
    app.add_flag("--reset-head", options.is_head_reset,
                 "start a new classifier where the file's has another number of classes");
  }
}

ModelSpec resolve_model(const std::string& name_or_file, const ModelOptions& options) {
  if (is_checkpoint_path(name_or_file)) {
    const io::ModelFile file = io::open_model(name_or_file, options.open());
    io::Fit fit = io::fit(file.header.spec, file.content);
    std::erase_if(fit.misfits, [&](const io::Misfit& misfit) {
      return io::as_resize(file.header.spec, misfit) || io::is_head(misfit.wanted.name);
    });
    io::check_fit(fit, file.header.spec, file.content.file.origin);
    print_notes(file.notes);
    return file.header.spec;
  }
  if (!options.model.empty()) {
    throw Error(ErrorKind::kUsage, "--model says what a file holds, and \"" + name_or_file +
                                       "\" is a model of its own");
  }
  const ModelSpec spec = named_spec(name_or_file);
  return options.sets.empty() ? spec : with_overrides(spec, parse_overrides(options.sets));
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
