#include "adjoin/cli/networks.h"

#include "adjoin/models/init.h"
#include "adjoin/models/slice.h"

namespace adjoin::cli {
namespace {

models::Model started(const ModelSpec& spec, uint64_t seed) {
  io::ModelHeader header;
  header.spec = spec;
  header.preprocessing = default_preprocessing(spec);
  return {header, models::init(spec, seed), {}};
}

}  // namespace

models::Model load_network(const std::string& name_or_file, const ModelOptions& options,
                           const ChoiceText& choice, uint64_t seed) {
  models::Model model = is_checkpoint_path(name_or_file)
                            ? models::load(name_or_file, {options.open()})
                            : started(resolve_model(name_or_file, options), seed);
  if (is_checkpoint_path(name_or_file)) {
    model.header.provenance.parent = models::content_hash(model.weights);
  }
  if (const auto part = chosen_part(model.header.spec, choice)) {
    model.weights = models::copies(*part, model.weights);
    model.header.spec = part->spec;
  }
  return model;
}

}  // namespace adjoin::cli
