#include "adjoin/data/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "adjoin/core/error.h"
#include "adjoin/data/transform.h"
#include "adjoin/io/safetensors.h"
#include "adjoin/models/load.h"

namespace adjoin::data {
namespace {

torch::Tensor tensor_in(const io::TensorFile& file, const std::string& name) {
  const auto found = file.tensors.find(name);
  return found == file.tensors.end() ? torch::Tensor()
                                     : models::as_tensor(found->second, file.file);
}

torch::Tensor images_in(const io::TensorFile& file, const ModelSpec& spec) {
  const auto images = tensor_in(file, "input");
  const std::string& origin = file.file.origin;
  if (!images.defined()) {
    throw Error(ErrorKind::kData, origin +
                                      ": has no tensor \"input\" (images, channels, height, "
                                      "width)");
  }
  const std::vector<int64_t> wanted = {spec.in_chans, spec.img_size, spec.img_size};
  if (images.dim() != 4 || images.sizes().slice(1) != wanted || !images.is_floating_point()) {
    throw Error(ErrorKind::kData,
                fmt::format("{}: input is ({}) of {}, must be (images, {}) of floats", origin,
                            fmt::join(images.sizes(), ", "), c10::toString(images.scalar_type()),
                            fmt::join(wanted, ", ")));
  }
  if (images.size(0) == 0) throw Error(ErrorKind::kData, origin + ": input holds no image");
  return images.element_size() >= 4 ? images : images.to(torch::kFloat32);
}

torch::Tensor labels_in(const io::TensorFile& file, int64_t count, int64_t classes) {
  auto labels = tensor_in(file, "labels");
  if (!labels.defined()) return {};
  const bool is_sound = labels.dim() == 1 && labels.size(0) == count &&
                        !labels.is_floating_point() && labels.scalar_type() != torch::kBool;
  labels = is_sound ? labels.to(torch::kInt64) : labels;
  if (!is_sound || (count > 0 && (labels.min().item<int64_t>() < 0 ||
                                  labels.max().item<int64_t>() >= classes))) {
    throw Error(ErrorKind::kData,
                fmt::format("{}: labels must be {} integers from 0 to {}, one per image",
                            file.file.origin, count, classes - 1));
  }
  return labels;
}

std::vector<Input> tensor_inputs(io::FileBytes bytes, const ModelSpec& spec) {
  const io::TensorFile file = io::read_safetensors(std::move(bytes));
  const auto images = images_in(file, spec);
  const auto labels = labels_in(file, images.size(0), spec.num_classes);
  std::vector<Input> inputs;
  for (int64_t i = 0; i < images.size(0); ++i) {
    inputs.push_back({fmt::format("{}[{}]", file.file.origin, i), images.select(0, i), {}});
    if (labels.defined()) inputs.back().label = labels.select(0, i).item<int64_t>();
  }
  return inputs;
}

}  // namespace

std::vector<Input> read_inputs(const std::string& path, const io::ModelHeader& header) {
  io::FileBytes file = io::map_file(path);
  const ModelSpec& spec = header.spec;
  if (!looks_like_image(file.bytes)) {
    if (path.ends_with(".safetensors")) return tensor_inputs(std::move(file), spec);
    throw Error(ErrorKind::kData, path + ": is no JPEG, no PNG and no .safetensors with \"input\"");
  }
  if (spec.in_chans != 1 && spec.in_chans != 3) {
    throw Error(ErrorKind::kData, fmt::format("{}: {} takes {} channels, an image has 1 or 3", path,
                                              spec.name, spec.in_chans));
  }
  const Image image = decode_image(file.bytes, path, spec.in_chans);
  return {{path, eval_input(image, header.preprocessing, spec.img_size, path), {}}};
}

}  // namespace adjoin::data
