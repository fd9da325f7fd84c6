#pragma once

// Model files without LibTorch: every value is a function of its tensor's name and index.

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "adjoin/core/hash.h"
#include "adjoin/io/model_file.h"
#include "adjoin/io/safetensors.h"

namespace adjoin {

inline std::vector<float> made_up_values(const TensorInfo& info) {
  std::vector<float> values(static_cast<size_t>(info.numel()));
  const bool is_scale = info.init.kind == InitKind::kOnes;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto bits = static_cast<double>(splitmix64(fnv1a(info.name) + i) >> 11U);
    values[i] = static_cast<float>((is_scale ? 1 : 0) + 0.2 * (bits * 0x1p-52 - 1));
  }
  return values;
}

/// Writes the network under the names of a layout; gives the path back.
inline std::string write_model(const std::string& path, const ModelSpec& spec,
                               const std::map<std::string, std::string, std::less<>>& metadata,
                               io::Layout layout = io::Layout::kTimm) {
  std::vector<std::vector<float>> values;
  std::vector<io::TensorToWrite> entries;
  for (const TensorInfo& info : tensors(spec)) {
    values.push_back(made_up_values(info));
    entries.push_back({io::name_in(layout, spec, info.name), io::Dtype::kF32, info.shape(),
                       std::as_bytes(std::span(values.back()))});
  }
  io::write_safetensors(path, entries, metadata);
  return path;
}

/// A file of ours, with its spec inside.
inline std::string write_own_model(const std::string& path, const ModelSpec& spec) {
  return write_model(path, spec, io::to_metadata({spec, {}, default_preprocessing(spec), {}}));
}

/// A tensor file with `input` (images, C, H, W) and, when given, `labels`.
inline std::string write_input(const std::string& path, const ModelSpec& spec, int64_t images,
                               const std::vector<int64_t>& labels = {}) {
  const std::vector<int64_t> shape = {images, spec.in_chans, spec.img_size, spec.img_size};
  const auto values =
      made_up_values({"input",
                      {whole(images * spec.in_chans), whole(spec.img_size), whole(spec.img_size)},
                      {InitKind::kZeros}});
  std::vector<io::TensorToWrite> entries = {
      {"input", io::Dtype::kF32, shape, std::as_bytes(std::span(values))}};
  if (!labels.empty()) {
    entries.push_back({"labels",
                       io::Dtype::kI64,
                       {static_cast<int64_t>(labels.size())},
                       std::as_bytes(std::span(labels))});
  }
  io::write_safetensors(path, entries, {});
  return path;
}

}  // namespace adjoin
