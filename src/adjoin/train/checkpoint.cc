#include "adjoin/train/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "adjoin/core/error.h"
#include "adjoin/io/safetensors.h"
#include "adjoin/models/load.h"

namespace adjoin::train {
namespace {

constexpr char kStateKey[] = "adjoin.checkpoint";

}  // namespace

void save_checkpoint(const std::string& path, const Json& state, const NamedTensors& tensors) {
  models::save_tensors(path, tensors, {{kStateKey, state.dump()}});
}

Json read_checkpoint_state(const std::string& path) {
  const io::TensorFile file = io::read_safetensors(io::map_file(path));
  const auto found = file.metadata.find(kStateKey);
  if (found == file.metadata.end()) {
    throw Error(ErrorKind::kData, path + ": is no checkpoint of a run: it has no " + kStateKey);
  }
  Json state = parse_json(found->second, path);
  for (const char* key : {"run", "config", "inputs", "machine"}) {
    if (state.is_object() && state.contains(key) && state[key].is_object()) continue;
    throw Error(ErrorKind::kData, fmt::format("{}: its {} has no \"{}\"", path, kStateKey, key));
  }
  return state;
}

void restore_tensors(const std::string& path, const NamedTensors& tensors) {
  const io::TensorFile file = io::read_safetensors(io::map_file(path));
  std::vector<torch::Tensor> stored;
  for (const auto& [name, tensor] : tensors) {
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end()) {
      throw Error(ErrorKind::kData, fmt::format("{}: has no tensor {}", path, name));
    }
    stored.push_back(models::as_tensor(found->second, file.file));
    if (stored.back().sizes() != tensor.sizes() ||
        stored.back().scalar_type() != tensor.scalar_type()) {
      throw Error(ErrorKind::kData, fmt::format("{}: {} is ({}) of {}, must be ({}) of {}", path,
                                                name, fmt::join(stored.back().sizes(), ", "),
                                                c10::toString(stored.back().scalar_type()),
                                                fmt::join(tensor.sizes(), ", "),
                                                c10::toString(tensor.scalar_type())));
    }
  }
  if (file.tensors.size() != tensors.size()) {
    throw Error(ErrorKind::kData, fmt::format("{}: holds {} tensors, must hold {}", path,
                                              file.tensors.size(), tensors.size()));
  }
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < tensors.size(); ++i) {
    torch::Tensor target = tensors[i].second;
    target.copy_(stored[i]);
  }
}

}  // namespace adjoin::train
