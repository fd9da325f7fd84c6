#pragma once

// Models from files and to files.
//
//   models::Model model = models::load("deit.pth");
//   models::forward(model.header.spec, model.weights, images);
//   models::save("deit.safetensors", model.header, model.weights);

#include <optional>
#include <string>
#include <vector>

#include "adjoin/io/model_file.h"
#include "adjoin/tensor/weights.h"

namespace adjoin::models {

struct LoadOptions {
  io::OpenOptions open;
  bool is_head_reset = false;         ///< a head of another class count, or none, starts anew
  std::optional<uint64_t> seed = {};  ///< of a new head; the file's own if not given
  bool is_mixer_reset = false;  ///< what another mixer, norm or shortcut than the file's needs
                                ///< starts anew, what it does not need is left out
};

struct Model {
  io::ModelHeader header;
  Weights weights;
  std::vector<std::string> notes;  ///< what was decided for the user, a sentence each
};

/// Opens a model file of any format (see io/model_file.h). The weights are in the type they are
/// stored in, and lie in the mapped file: nothing is copied but what must be changed. Position
/// embeddings and relative position tables of another grid are interpolated. Error(kData) naming
/// every tensor that is missing, unexpected or of another shape.
Model load(const std::string& path, const LoadOptions& options = {});

/// Fits the tensors of an opened file to its network; `options.open` was applied already.
Model load(io::ModelFile file, const LoadOptions& options);

/// Writes one safetensors file, whole or not at all, in the type the weights have.
void save(const std::string& path, const io::ModelHeader& header, const Weights& weights,
          io::Layout layout = io::Layout::kTimm);

/// Writes any tensors under the given names, whole or not at all.
void save_tensors(const std::string& path, const NamedTensors& tensors,
                  const std::map<std::string, std::string, std::less<>>& metadata);

/// A name for a set of weights, from names, types, shapes and values: "fnv1a:" and 16 hexadecimal
/// digits. What a file made from them says its parent is.
std::string content_hash(const Weights& weights);

/// A grid of positions, or of relative positions, at another size: bicubic, without antialiasing,
/// as the authors of DeiT and Swin do it.
///
/// (from x from, C) -> (to x to, C)
torch::Tensor resized_grid(const torch::Tensor& grid, int64_t from, int64_t to);

/// A tensor that lies in a file. Shares its bytes where they are aligned.
torch::Tensor as_tensor(const io::StoredTensor& stored, const io::FileBytes& file);

}  // namespace adjoin::models
