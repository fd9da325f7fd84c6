#include "adjoin/models/load.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "adjoin/core/error.h"
#include "adjoin/core/hash.h"
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
  const auto rows = tensor.flatten(0, -2);  // (prefix + grid, C)
  const bool is_wide = rows.element_size() >= 4;
  auto grid = rows.narrow(0, resize.prefix, resize.from * resize.from);
  grid = resized_grid(is_wide ? grid : grid.to(torch::kFloat32), resize.from, resize.to);
  auto sizes = tensor.sizes().vec();
  sizes[sizes.size() - 2] = resize.prefix + resize.to * resize.to;
  return torch::cat({rows.narrow(0, 0, resize.prefix), grid.to(tensor.scalar_type())}).view(sizes);
}

/// Takes the misfits that can be interpolated out of `fit` into the model.
void take_resized(const io::FileBytes& file, io::Fit& fit, Model& model) {
  std::erase_if(fit.misfits, [&](const io::Misfit& misfit) {
    const auto resize = io::as_resize(model.header.spec, misfit);
    if (!resize) return false;
    const std::string& name = misfit.wanted.name;
    model.weights.set(name, resized(as_tensor(misfit.stored, file), *resize));
    model.notes.push_back(fmt::format("{} is interpolated from {}x{} to {}x{}", name, resize->from,
                                      resize->from, resize->to, resize->to));
    return true;
  });
}

/// Starts heads that do not fit anew, in the type of the others, and takes them out of `fit`.
void take_new_heads(io::Fit& fit, Model& model, torch::ScalarType type, uint64_t seed) {
  const auto start = [&](const TensorInfo& info) {
    if (!io::is_head(info.name)) return false;
    model.weights.set(info.name, init_tensor(info, seed).to(type));
    model.notes.push_back(info.name + " starts anew");
    model.header.classes.clear();
    return true;
  };
  std::erase_if(fit.missing, start);
  std::erase_if(fit.misfits, [&](const io::Misfit& misfit) { return start(misfit.wanted); });
}

/// The name that q, k and v have in a block whose queries are its keys, or the other way round;
/// nothing for other tensors.
std::optional<std::string> other_projection(const std::string& name) {
  constexpr std::string_view kNames[] = {".attn.qkv.", ".attn.qv."};
  for (const size_t i : {0, 1}) {
    const size_t at = name.find(kNames[i]);
    if (at == std::string::npos) continue;
    return std::string(name).replace(at, kNames[i].size(), kNames[1 - i]);
  }
  return std::nullopt;
}

/// q and v of q, k and v, or q, q and v of q and v, as `info` wants them; undefined where the file
/// has nothing of that shape.
torch::Tensor from_other_projection(const TensorInfo& info, const io::TensorFile& file) {
  const auto other = other_projection(info.name);
  const auto found = other ? file.tensors.find(*other) : file.tensors.end();
  if (found == file.tensors.end()) return {};
  const bool is_to_two = other->find(".attn.qkv.") != std::string::npos;
  std::vector<int64_t> shape = info.shape();
  shape[0] = is_to_two ? shape[0] / 2 * 3 : shape[0] / 3 * 2;
  if (found->second.shape != shape) return {};
  const auto stored = as_tensor(found->second, file.file);
  if (!stored.is_floating_point()) return {};
  const auto parts = stored.chunk(is_to_two ? 3 : 2, 0);
  return is_to_two ? torch::cat({parts[0], parts[2]}) : torch::cat({parts[0], parts[0], parts[1]});
}

/// Starts what another mixer, norm or shortcut needs, from the file where it can, else anew; leaves
/// out what it does not need. Takes all this out of `fit`.
void take_new_kind(const io::TensorFile& file, io::Fit& fit, Model& model, uint64_t seed) {
  if (model.weights.size() == 0) return;
  const auto type = model.weights.begin()->second.scalar_type();
  std::vector<std::string> kept, started, used;
  const auto start = [&](const TensorInfo& info) {
    const auto other = other_projection(info.name);
    const auto value = from_other_projection(info, file);
    if (value.defined()) {
      model.weights.set(info.name, value);
      kept.push_back(info.name);
      used.push_back(*other);
      return true;
    }
    if (other || !io::is_of_kind(info.name)) return false;
    model.weights.set(info.name, init_tensor(info, seed).to(type));
    started.push_back(info.name);
    return true;
  };
  std::erase_if(fit.missing, start);
  std::erase_if(fit.misfits, [&](const io::Misfit& misfit) { return start(misfit.wanted); });
  const auto first_unused = std::stable_partition(
      fit.unexpected.begin(), fit.unexpected.end(), [&](const std::string& name) {
        const bool is_used = std::find(used.begin(), used.end(), name) != used.end();
        return !is_used && (other_projection(name) || !io::is_of_kind(name));
      });
  const std::vector<std::string> unused(first_unused, fit.unexpected.end());
  fit.unexpected.erase(first_unused, fit.unexpected.end());
  const auto note = [&](const std::vector<std::string>& names, std::string_view what) {
    if (names.empty()) return;
    model.notes.push_back(
        fmt::format("{} ({}): {}", what, names.size(), fmt::join(io::gathered(names), ", ")));
  };
  note(kept, "tensors put together from what the file has");
  note(started, "tensors that start anew");
  note(unused, "tensors of the file that are left out");
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
  const size_t reach = stored.reach();
  auto copy = torch::empty({static_cast<int64_t>(reach / io::item_size(stored.dtype))}, options);
  if (reach > 0) std::memcpy(copy.data_ptr(), data, reach);
  return copy.as_strided(stored.shape, stored.strides);
}

Model load(io::ModelFile file, const LoadOptions& options) {
  Model model{std::move(file.header), {}, std::move(file.notes)};
  const io::FileBytes& bytes = file.content.file;
  io::Fit fit = io::fit(model.header.spec, file.content);
  for (const auto& [name, stored] : fit.found) model.weights.set(name, as_tensor(*stored, bytes));
  take_resized(bytes, fit, model);
  const uint64_t seed = options.seed.value_or(static_cast<uint64_t>(model.header.provenance.seed));
  if (options.is_head_reset && model.weights.size() > 0) {
    take_new_heads(fit, model, model.weights.begin()->second.scalar_type(), seed);
  }
  if (options.is_mixer_reset) take_new_kind(file.content, fit, model, seed);
  io::check_fit(fit, model.header.spec, bytes.origin);
  if (!fit.buffers.empty()) {
    model.notes.push_back(fmt::format("{} buffers are left out: they are computed anew (last: {})",
                                      fit.buffers.size(), fit.buffers.back()));
  }
  return model;
}

Model load(const std::string& path, const LoadOptions& options) {
  return load(io::open_model(path, options.open), options);
}

void save(const std::string& path, const io::ModelHeader& header, const Weights& weights,
          io::Layout layout) {
  NamedTensors named;
  for (const TensorInfo& info : tensors(header.spec)) {
    const torch::Tensor& tensor = weights.at(info.name);
    if (tensor.sizes() != info.shape()) {
      throw Error(ErrorKind::kInternal, info.name + " has not the shape its spec says");
    }
    named.emplace_back(io::name_in(layout, header.spec, info.name), tensor);
  }
  save_tensors(path, named, io::to_metadata(header));
}

void save_tensors(const std::string& path, const NamedTensors& tensors,
                  const std::map<std::string, std::string, std::less<>>& metadata) {
  std::vector<torch::Tensor> kept;  // keeps copies alive until they are written
  std::vector<io::TensorToWrite> entries;
  for (const auto& [name, value] : tensors) {
    const auto tensor = value.detach().to(torch::kCPU).contiguous();
    kept.push_back(tensor);
    const auto* data = static_cast<const std::byte*>(tensor.data_ptr());
    entries.push_back({name,
                       stored_type(tensor.scalar_type()),
                       tensor.sizes().vec(),
                       {data, static_cast<size_t>(tensor.nbytes())}});
  }
  io::write_safetensors(path, entries, metadata);
}

std::string content_hash(const Weights& weights) {
  uint64_t hash = fnv1a("");
  for (const auto& [name, tensor] : weights) {
    hash = fnv1a(fmt::format("{} {} {};", name, c10::toString(tensor.scalar_type()),
                             fmt::join(tensor.sizes(), ",")),
                 hash);
    const auto values = tensor.detach().to(torch::kCPU).contiguous();
    hash = fnv1a({static_cast<const char*>(values.data_ptr()), values.nbytes()}, hash);
  }
  return fmt::format("fnv1a:{:016x}", hash);
}

}  // namespace adjoin::models
