#include "adjoin/models/load.h"

#include <fmt/format.h>

#include "adjoin/core/error.h"
#include "adjoin/io/safetensors.h"
#include "adjoin/models/init.h"

namespace adjoin::models {
namespace {

struct DtypePair {
  io::Dtype stored;
  torch::ScalarType type;
};

constexpr DtypePair kDtypes[] = {
    {io::Dtype::kBool, torch::kBool},   {io::Dtype::kU8, torch::kUInt8},
    {io::Dtype::kI8, torch::kInt8},     {io::Dtype::kI16, torch::kInt16},
    {io::Dtype::kI32, torch::kInt32},   {io::Dtype::kI64, torch::kInt64},
    {io::Dtype::kF16, torch::kFloat16}, {io::Dtype::kBF16, torch::kBFloat16},
    {io::Dtype::kF32, torch::kFloat32}, {io::Dtype::kF64, torch::kFloat64},
};

torch::ScalarType torch_type(io::Dtype dtype) {
  for (const DtypePair& pair : kDtypes) {
    if (pair.stored == dtype) return pair.type;
  }
  throw Error(ErrorKind::kInternal, "a stored type has no LibTorch type");
}

io::Dtype stored_type(torch::ScalarType type) {
  for (const DtypePair& pair : kDtypes) {
    if (pair.type == type) return pair.stored;
  }
  throw Error(ErrorKind::kInternal, "a LibTorch type cannot be stored");
}

/// The class tokens' rows as they are, the grid's resized.
torch::Tensor resized(const torch::Tensor& tensor, const io::Resize& resize) {
  const auto rows = tensor.to(torch::kFloat32).flatten(0, -2);  // (prefix + grid, C)
  const auto grid = resized_grid(rows.narrow(0, resize.prefix, resize.from * resize.from),
                                 resize.from, resize.to);
  auto sizes = tensor.sizes().vec();
  sizes[sizes.size() - 2] = resize.prefix + resize.to * resize.to;
  return torch::cat({rows.narrow(0, 0, resize.prefix), grid}).view(sizes).to(tensor.scalar_type());
}

/// Takes the misfits that can be interpolated out of `fit` into the model.
void take_resized(const io::ModelFile& file, io::Fit& fit, Model& model) {
  std::vector<io::Misfit> others;
  for (io::Misfit& misfit : fit.misfits) {
    const auto resize = io::as_resize(file.header.spec, misfit);
    if (!resize) {
      others.push_back(std::move(misfit));
      continue;
    }
    model.weights.set(misfit.wanted.name,
                      resized(as_tensor(misfit.stored, file.content.file), *resize));
    model.notes.push_back(fmt::format("{} is interpolated from {}x{} to {}x{}", misfit.wanted.name,
                                      resize->from, resize->from, resize->to, resize->to));
  }
  fit.misfits = std::move(others);
}

/// Starts heads that do not fit anew, and takes them out of `fit`.
void take_new_heads(io::Fit& fit, Model& model) {
  std::vector<TensorInfo> fresh;
  std::erase_if(fit.missing, [&](const TensorInfo& info) {
    if (!io::is_head(info.name)) return false;
    fresh.push_back(info);
    return true;
  });
  std::erase_if(fit.misfits, [&](const io::Misfit& misfit) {
    if (!io::is_head(misfit.wanted.name)) return false;
    fresh.push_back(misfit.wanted);
    return true;
  });
  for (const TensorInfo& info : fresh) {
    model.weights.set(info.name, init_tensor(info, model.header.provenance.seed));
    model.notes.push_back(info.name + " starts anew");
  }
  if (!fresh.empty()) model.header.classes.clear();
}

/// What to do about a head of another class count; nothing when that is not what is wrong.
std::string head_advice(const io::Fit& fit) {
  for (const io::Misfit& misfit : fit.misfits) {
    if (!io::is_head(misfit.wanted.name) || misfit.stored.shape.empty()) continue;
    return fmt::format(
        "; to keep its {} classes add --set model.num_classes={}, to start a new head --reset-head",
        misfit.stored.shape[0], misfit.stored.shape[0]);
  }
  return "";
}

}  // namespace

torch::Tensor resized_grid(const torch::Tensor& grid, int64_t from, int64_t to) {
  const int64_t channels = grid.size(1);
  const auto image = grid.reshape({1, from, from, channels}).permute({0, 3, 1, 2});
  return torch::upsample_bicubic2d(image, {to, to}, /*align_corners=*/false)
      .permute({0, 2, 3, 1})
      .reshape({to * to, channels});
}

torch::Tensor as_tensor(const io::StoredTensor& stored, const io::FileBytes& file) {
  const auto type = torch_type(stored.dtype);
  const auto options = torch::TensorOptions().dtype(type);
  auto* data = const_cast<std::byte*>(stored.data);  // the map is private: writing is no harm
  const bool is_aligned = reinterpret_cast<uintptr_t>(data) % io::item_size(stored.dtype) == 0;
  if (is_aligned) {
    const auto owner = file.owner;
    return torch::from_blob(
        data, stored.shape, stored.strides, [owner](void*) {}, options);
  }
  int64_t span = stored.numel() == 0 ? 0 : 1;  // numbers from the first to the last
  for (size_t i = 0; i < stored.shape.size() && span > 0; ++i) {
    span += (stored.shape[i] - 1) * stored.strides[i];
  }
  auto copy = torch::empty({span}, options);
  if (span > 0) {
    std::memcpy(copy.data_ptr(), data, static_cast<size_t>(span) * io::item_size(stored.dtype));
  }
  return copy.as_strided(stored.shape, stored.strides);
}

Model load(io::ModelFile file, bool is_head_reset) {
  Model model{std::move(file.header), {}, std::move(file.notes)};
  file.header.spec = model.header.spec;
  io::Fit fit = io::fit(model.header.spec, file.content);
  take_resized(file, fit, model);
  if (is_head_reset) take_new_heads(fit, model);
  if (!fit.is_exact()) {
    throw Error(ErrorKind::kData,
                fmt::format("{}: does not fit {}: {}{}", file.content.file.origin,
                            model.header.spec.name, io::describe(fit), head_advice(fit)));
  }
  for (const auto& [name, stored] : fit.found) {
    model.weights.set(name, as_tensor(*stored, file.content.file));
  }
  if (!fit.buffers.empty()) {
    model.notes.push_back(fmt::format("{} buffers are left out: they are computed anew (last: {})",
                                      fit.buffers.size(), fit.buffers.back()));
  }
  return model;
}

Model load(const std::string& path, const LoadOptions& options) {
  return load(io::open_model(path, options.open), options.is_head_reset);
}

void save(const std::string& path, const io::ModelHeader& header, const Weights& weights,
          io::Layout layout) {
  std::vector<torch::Tensor> kept;  // keeps copies alive until they are written
  std::vector<io::TensorToWrite> entries;
  for (const TensorInfo& info : tensors(header.spec)) {
    const auto tensor = weights.at(info.name).detach().to(torch::kCPU).contiguous();
    if (tensor.sizes() != info.shape()) {
      throw Error(ErrorKind::kInternal, info.name + " has not the shape its spec says");
    }
    kept.push_back(tensor);
    const auto* data = static_cast<const std::byte*>(tensor.data_ptr());
    entries.push_back({io::name_in(layout, header.spec, info.name),
                       stored_type(tensor.scalar_type()),
                       info.shape(),
                       {data, static_cast<size_t>(tensor.nbytes())}});
  }
  io::write_safetensors(path, entries, io::to_metadata(header));
}

}  // namespace adjoin::models
