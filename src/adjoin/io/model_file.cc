#include "adjoin/io/model_file.h"

#include "adjoin/core/place.h"
#include "adjoin/io/pth.h"
#include "adjoin/io/recognise.h"
#include "adjoin/io/safetensors.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/named.h"

namespace adjoin::io {
namespace {

constexpr char kSpec[] = "adjoin.spec";
constexpr char kClasses[] = "adjoin.classes";
constexpr char kPreprocessing[] = "adjoin.preprocessing";
constexpr char kProvenance[] = "adjoin.provenance";

// Parsed JSON takes many times the room of its text, so the text must be short.
constexpr size_t kLongestEntry = size_t{4} << 20;

/// The JSON of one metadata entry.
Json parse_entry(const std::string& text, const std::string& path) {
  if (text.size() > kLongestEntry) {
    throw Error(ErrorKind::kData,
                fmt::format("{}: has {} bytes, at most {}", path, text.size(), kLongestEntry));
  }
  return parse_json(text, path);
}

/// Reads one metadata entry into `value`; an absent one leaves it as it is.
template <class T>
void read_entry(const TensorFile& file, const char* key, T& value) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) return;
  const std::string path = file.file.origin + ": " + key;
  from_json(parse_entry(found->second, path), value, path);
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
    header.spec = spec_from_json(parse_entry(file.metadata.find(kSpec)->second, kSpec));
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

/// What timm writes beside the weights of a model on the Hub. Only what we use is looked at.
class HubConfig {
 public:
  explicit HubConfig(const std::string& path)
      : path_(path), json_(read_json_file(path, kLongestEntry)) {
    if (!json_.is_object()) fail("is no JSON object");
    const auto nested = json_.find("pretrained_cfg");
    details_ = nested != json_.end() && nested->is_object() ? &*nested : &json_;
  }

  /// `named` is what the user says it is; otherwise the config says.
  ModelHeader header(const std::optional<ModelSpec>& named, std::vector<std::string>& notes) const {
    try {
      ModelHeader header;
      header.spec = adapted(named ? *named : architecture());
      header.preprocessing = default_preprocessing(header.spec);
      Preprocessing& preprocessing = header.preprocessing;
      read(*details_, "mean", preprocessing.mean, Range{-1e3, 1e3});
      read(*details_, "std", preprocessing.std, Range{1e-6, 1e3});
      read(*details_, "crop_pct", preprocessing.crop_pct, Range{0.05, 1});
      read(*details_, "interpolation", preprocessing.interpolation);
      read(json_, "label_names", header.classes);
      check_header(header, path_);
      note_unknown(notes);
      return header;
    } catch (const Error& e) {
      fail(e.what());
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kData, what.starts_with(path_) ? what : path_ + ": " + what);
  }

  ModelSpec architecture() const {
    std::string name;
    read(json_, "architecture", name);
    if (name.empty()) fail("has no \"architecture\"; folders that timm wrote are read");
    const auto changes = json_.find("model_args");
    if (changes != json_.end() && !changes->is_null() && !changes->empty()) {
      fail("has model_args, which are not read; say what it is with --model and --set");
    }
    return catalog_spec(name);
  }

  /// With the classes and the input the config speaks of.
  ModelSpec adapted(ModelSpec spec) const {
    read(*details_, "num_classes", spec.num_classes, Range{1, 1e6});
    read(json_, "num_classes", spec.num_classes, Range{1, 1e6});
    if (auto* vit = std::get_if<VitSpec>(&spec.family)) read(json_, "global_pool", vit->pool);
    std::vector<int64_t> size;
    read(*details_, "input_size", size, Range{1, 8192});
    if (!size.empty()) {
      if (size.size() != 3 || size[1] != size[2]) {
        fail("input_size: must be [channels, side, side]");
      }
      spec.in_chans = size[0];
      spec = with_overrides(spec, {{"img_size", std::to_string(size[1])}});
    }
    validate(spec);
    return spec;
  }

  /// Says what the config asks for and we do not do.
  void note_unknown(std::vector<std::string>& notes) const {
    const auto mode = details_->find("crop_mode");
    if (mode != details_->end() && *mode != "center") {
      notes.push_back(fmt::format("{}: crop_mode {} is not known; the centre is cut out", path_,
                                  adjoin::describe(*mode)));
    }
  }

  template <class T>
  void read(const Json& json, const char* key, T& value, Range range = {}) const {
    const auto found = json.find(key);
    if (found == json.end() || found->is_null()) return;
    from_json(*found, value, path_ + ": " + key, range);
  }

  std::string path_;
  Json json_;
  const Json* details_ = nullptr;
};

/// The weights of a Hub folder.
std::string weights_in(const std::string& folder) {
  for (const char* name : {"model.safetensors", "pytorch_model.bin"}) {
    const std::string path = folder + "/" + name;
    if (place_at(path) != Place::kNothing) return path;
  }
  throw Error(ErrorKind::kIo,
              folder + ": is a folder without model.safetensors or pytorch_model.bin");
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

/// Applies what `--set` says; what no longer holds of the header goes.
void change(ModelHeader& header, const std::vector<Override>& overrides) {
  const ModelSpec before = header.spec;
  header.spec = with_overrides(before, overrides);
  const Preprocessing fresh = default_preprocessing(header.spec);
  if (header.preprocessing == default_preprocessing(before)) {
    header.preprocessing = fresh;
  } else if (header.spec.in_chans != before.in_chans) {
    header.preprocessing.mean = fresh.mean;
    header.preprocessing.std = fresh.std;
  }
  if (header.spec.num_classes != before.num_classes) header.classes.clear();
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

ModelFile open_model(TensorFile content, const OpenOptions& options) {
  ModelFile model;
  model.content = std::move(content);
  model.notes = model.content.notes;
  if (model.content.metadata.contains(kSpec)) {
    model.header = own_header(model.content);
    if (!options.model.empty() && options.model != model.header.spec.name) {
      throw Error(ErrorKind::kUsage, model.content.file.origin + ": is a " +
                                         model.header.spec.name + ", not a " + options.model +
                                         "; leave --model out, or use --set");
    }
  } else if (!options.model.empty()) {
    model.header.spec = named_spec(options.model);
    model.header.preprocessing = default_preprocessing(model.header.spec);
  } else {
    model.header = foreign_header(model.content, model.notes);
  }
  change(model.header, options.overrides);
  return model;
}

ModelFile open_model(const std::string& path, const OpenOptions& options) {
  if (place_at(path) != Place::kFolder) return open_model(read_checkpoint(path), options);
  TensorFile content = read_checkpoint(weights_in(path));
  const std::string config = path + "/config.json";
  if (content.metadata.contains(kSpec) || place_at(config) == Place::kNothing) {
    return open_model(std::move(content), options);
  }
  ModelFile model;
  model.content = std::move(content);
  model.notes = model.content.notes;
  std::optional<ModelSpec> named;
  if (!options.model.empty()) named = named_spec(options.model);
  model.header = HubConfig(config).header(named, model.notes);
  change(model.header, options.overrides);
  return model;
}

TensorFile read_checkpoint(const std::string& path) {
  FileBytes file = map_file(path);
  if (looks_like_pth(file)) return read_pth(std::move(file));
  if (looks_like_safetensors(file)) return read_safetensors(std::move(file));
  throw Error(ErrorKind::kData, path + ": is neither a .safetensors nor a file of torch.save");
}

}  // namespace adjoin::io
