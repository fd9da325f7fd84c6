#pragma once

// A model on disk: which network it is, what it says about itself, and its tensors. Ours are
// safetensors with a spec inside; foreign ones (.pth, .safetensors, folders of the Hugging Face
// Hub) are matched to a network by what the user says, by their config, or by their tensors.

#include <map>
#include <string>
#include <vector>

#include "adjoin/io/layout.h"
#include "adjoin/io/tensor_file.h"
#include "adjoin/spec/overrides.h"
#include "adjoin/spec/preprocessing.h"

namespace adjoin::io {

/// Where a model comes from. No time, host or path: equal runs give equal files.
struct Provenance {
  int64_t seed = 0;
  std::string recipe;  ///< hash of the resolved recipe; empty where none was run
  std::string parent;  ///< hash of the file it was made from; empty where there was none

  bool operator==(const Provenance&) const = default;
};

template <class Visitor>
void fields(Visitor& visit, Provenance& provenance) {
  visit("seed", provenance.seed);
  visit("recipe", provenance.recipe);
  visit("parent", provenance.parent);
}

/// What a model file says besides its numbers.
struct ModelHeader {
  ModelSpec spec;
  std::vector<std::string> classes;  ///< their names; empty when unknown
  Preprocessing preprocessing;
  Provenance provenance;
};

/// The metadata of a safetensors file of ours.
std::map<std::string, std::string, std::less<>> to_metadata(const ModelHeader& header);

/// What the user says about a file.
struct OpenOptions {
  std::string model;  ///< a name of the catalog, or a .json with a spec; empty: not said
  std::vector<Override> overrides;
};

struct ModelFile {
  ModelHeader header;
  TensorFile content;
  std::vector<std::string> notes;  ///< what was decided for the user, a sentence each
};

/// Opens a model file, or a folder with `config.json` and `model.safetensors` or
/// `pytorch_model.bin`. Whether the tensors fit header.spec is not yet decided: see `fit`.
ModelFile open_model(const std::string& path, const OpenOptions& options = {});

/// The same of a checkpoint that was read already.
ModelFile open_model(TensorFile content, const OpenOptions& options = {});

/// The tensors of a checkpoint, whatever its format: what it opens with decides, not its name.
TensorFile read_checkpoint(const std::string& path);

}  // namespace adjoin::io
