#include "adjoin/io/model_file.h"

#include <fmt/ranges.h>

#include <filesystem>

#include "adjoin/core/hash.h"
#include "adjoin/io/pth.h"
#include "adjoin/io/safetensors.h"
#include "adjoin/spec/catalog.h"

namespace adjoin::io {
namespace {

constexpr char kSpec[] = "adjoin.spec";
constexpr char kClasses[] = "adjoin.classes";
constexpr char kPreprocessing[] = "adjoin.preprocessing";
constexpr char kProvenance[] = "adjoin.provenance";

/// Reads one metadata entry into `value`; an absent one leaves it as it is.
template <class T>
void read_entry(const TensorFile& file, const char* key, T& value) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) return;
  const std::string path = file.file.origin + ": " + key;
  from_json(parse_json(found->second, path), value, path);
}

void check_header(const ModelHeader& header, const std::string& origin) {
  const auto channels = static_cast<size_t>(header.spec.in_chans);
  if (header.preprocessing.mean.size() != channels || header.preprocessing.std.size() != channels) {
    throw Error(
        ErrorKind::kData,
        fmt::format("{}: {} has {} means and {} deviations for {} channels", origin, kPreprocessing,
                    header.preprocessing.mean.size(), header.preprocessing.std.size(), channels));
  }
  if (!header.classes.empty() &&
      static_cast<int64_t>(header.classes.size()) != header.spec.num_classes) {
    throw Error(ErrorKind::kData,
                fmt::format("{}: {} names {} classes, the network has {}", origin, kClasses,
                            header.classes.size(), header.spec.num_classes));
  }
}

/// The header of a file of ours.
ModelHeader own_header(const TensorFile& file) {
  const std::string& origin = file.file.origin;
  try {
    ModelHeader header;
    header.spec = spec_from_json(parse_json(file.metadata.find(kSpec)->second, kSpec));
    header.preprocessing = default_preprocessing(header.spec);
    read_entry(file, kClasses, header.classes);
    read_entry(file, kPreprocessing, header.preprocessing);
    read_entry(file, kProvenance, header.provenance);
    check_header(header, origin);
    return header;
  } catch (const Error& e) {
    const std::string what = e.what();
    throw Error(ErrorKind::kData, what.starts_with(origin) ? what : origin + ": " + what);
  }
}

ModelSpec named_spec(const std::string& name) {
  return name.ends_with(".json") ? read_spec_file(name) : catalog_spec(name);
}

/// What timm writes beside the weights of a model on the Hub. Foreign and lenient: only what we
/// use is looked at.
class HubConfig {
 public:
  explicit HubConfig(const std::filesystem::path& folder)
      : path_((folder / "config.json").string()), json_(read_json_file(path_)) {
    const auto nested = json_.is_object() ? json_.find("pretrained_cfg") : json_.end();
    details_ = nested != json_.end() && nested->is_object() ? *nested : json_;
  }

  ModelHeader header() const {
    ModelHeader header;
    header.spec = spec();
    header.preprocessing = default_preprocessing(header.spec);
    Preprocessing& preprocessing = header.preprocessing;
    read(details_, "mean", preprocessing.mean, Range{-1e3, 1e3});
    read(details_, "std", preprocessing.std, Range{1e-6, 1e3});
    read(details_, "crop_pct", preprocessing.crop_pct, Range{0.05, 1});
    read(details_, "interpolation", preprocessing.interpolation);
    read(json_, "label_names", header.classes);
    check_header(header, path_);
    return header;
  }

 private:
  ModelSpec spec() const {
    std::string name;
    read(json_, "architecture", name);
    if (name.empty()) {
      throw Error(ErrorKind::kData,
                  path_ + ": has no \"architecture\"; folders that timm wrote are read");
    }
    ModelSpec spec;
    try {
      spec = catalog_spec(name);
    } catch (const Error& e) {
      throw Error(ErrorKind::kData, path_ + ": " + e.what());
    }
    read(json_, "num_classes", spec.num_classes, Range{1, 1e6});
    std::vector<int64_t> size;
    read(details_, "input_size", size, Range{1, 8192});
    if (size.size() == 3) {
      spec.in_chans = size[0];
      spec.img_size = size[1];
    }
    return spec;
  }

  template <class T>
  void read(const Json& json, const char* key, T& value, Range range = {}) const {
    const auto found = json.is_object() ? json.find(key) : json.end();
    if (found == json.end() || found->is_null()) return;
    try {
      from_json(*found, value, path_ + ": " + key, range);
    } catch (const Error& e) {
      throw Error(ErrorKind::kData, e.what());
    }
  }

  std::string path_;
  Json json_;
  Json details_;
};

/// The weights of a Hub folder.
std::string weights_in(const std::filesystem::path& folder) {
  for (const char* name : {"model.safetensors", "pytorch_model.bin"}) {
    if (std::filesystem::exists(folder / name)) return (folder / name).string();
  }
  throw Error(ErrorKind::kIo, fmt::format("{}: is a folder without model.safetensors or "
                                          "pytorch_model.bin",
                                          folder.string()));
}

ModelHeader foreign_header(const TensorFile& file, std::vector<std::string>& notes) {
  Recognised found = recognise(file);
  notes.push_back(fmt::format(
      "{}: recognised as {}{}", file.file.origin, found.spec.name,
      found.others.empty()
          ? ""
          : fmt::format(" ({} has the same tensors: say --model to choose)", join(found.others))));
  ModelHeader header;
  header.preprocessing = default_preprocessing(found.spec);
  header.spec = std::move(found.spec);
  return header;
}

}  // namespace

std::map<std::string, std::string, std::less<>> to_metadata(const ModelHeader& header) {
  std::map<std::string, std::string, std::less<>> metadata;
  metadata["format"] = "pt";  // what other readers of safetensors ask for
  metadata[kSpec] = spec_to_json(header.spec).dump();
  if (!header.classes.empty()) metadata[kClasses] = to_json(header.classes).dump();
  metadata[kPreprocessing] = to_json(header.preprocessing).dump();
  metadata[kProvenance] = to_json(header.provenance).dump();
  return metadata;
}

ModelFile open_model(const std::string& path, const OpenOptions& options) {
  const bool is_folder = std::filesystem::is_directory(path);
  ModelFile model;
  model.content = read_checkpoint(is_folder ? weights_in(path) : path);
  model.notes = model.content.notes;
  if (model.content.metadata.contains(kSpec)) {
    if (!options.model.empty()) {
      throw Error(ErrorKind::kUsage,
                  path + ": says itself which model it is; leave --model out, or use --set");
    }
    model.header = own_header(model.content);
  } else if (!options.model.empty()) {
    model.header.spec = named_spec(options.model);
    model.header.preprocessing = default_preprocessing(model.header.spec);
  } else if (is_folder && std::filesystem::exists(std::filesystem::path(path) / "config.json")) {
    model.header = HubConfig(path).header();
  } else {
    model.header = foreign_header(model.content, model.notes);
  }
  ModelHeader& header = model.header;
  const int64_t channels = header.spec.in_chans;
  const int64_t classes = header.spec.num_classes;
  header.spec = with_overrides(header.spec, options.overrides);
  if (header.spec.in_chans != channels) header.preprocessing = default_preprocessing(header.spec);
  if (header.spec.num_classes != classes) header.classes.clear();
  return model;
}

TensorFile read_checkpoint(const std::string& path) {
  FileBytes file = map_file(path);
  return looks_like_pth(file) ? read_pth(std::move(file)) : read_safetensors(std::move(file));
}

std::string content_hash(const TensorFile& file) {
  uint64_t hash = fnv1a("");
  for (const auto& [name, tensor] : file.tensors) {
    hash = fnv1a(
        fmt::format("{} {} {};", name, dtype_name(tensor.dtype), fmt::join(tensor.shape, ",")),
        hash);
    int64_t reach = tensor.numel() == 0 ? 0 : 1;  // numbers from the first to the last
    for (size_t i = 0; i < tensor.shape.size() && reach > 0; ++i) {
      reach += (tensor.shape[i] - 1) * tensor.strides[i];
    }
    const auto* bytes = reinterpret_cast<const char*>(tensor.data);
    hash = fnv1a({bytes, static_cast<size_t>(reach) * item_size(tensor.dtype)}, hash);
  }
  return fmt::format("fnv1a:{:016x}", hash);
}

}  // namespace adjoin::io
