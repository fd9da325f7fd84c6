#include "adjoin/spec/autoformer.h"

#include <algorithm>

#include "adjoin/core/yaml.h"
#include "adjoin/spec/brief.h"

namespace adjoin {
namespace {

constexpr int64_t kHeadDim = 64;
constexpr int64_t kDistance = 14;

/// The part of a file under a key; `read` gets it.
template <class Read>
auto section(const std::string& path, const char* key, Read read) {
  const Json file = read_yaml_file(path);
  try {
    if (!file.is_object() || !file.contains(key) || !file.at(key).is_object()) {
      throw Error(ErrorKind::kConfig, fmt::format("has no {}", key));
    }
    return read(file.at(key));
  } catch (const Error& e) {
    throw Error(ErrorKind::kData, path + ": " + e.what());
  }
}

const Json& entry(const Json& part, const char* key) {
  const auto found = part.find(key);
  if (found == part.end()) throw Error(ErrorKind::kConfig, fmt::format("{}: is missing", key));
  return *found;
}

template <class T>
std::vector<T> list(const Json& part, const char* key) {
  std::vector<T> values;
  from_json(entry(part, key), values, key, Range{0.01, 16384});
  if (values.empty()) throw Error(ErrorKind::kConfig, fmt::format("{}: is empty", key));
  return values;
}

/// "dir/AutoFormer-T.yaml" -> "AutoFormer-T"
std::string stem(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  const std::string file = slash == std::string::npos ? path : path.substr(slash + 1);
  return file.substr(0, file.find_last_of('.'));
}

}  // namespace

AutoformerSpace autoformer_space(const std::string& name_or_file) {
  // Search spaces of the published supernets.
  static const std::vector<AutoformerSpace> kSpaces = {
      {"autoformer-tiny", {192, 216, 240}, {12, 13, 14}, {3, 4}, {3.5, 4}},
      {"autoformer-small", {320, 384, 448}, {12, 13, 14}, {5, 6, 7}, {3, 3.5, 4}},
      {"autoformer-base", {528, 576, 624}, {14, 15, 16}, {9, 10}, {3, 3.5, 4}}};
  for (const AutoformerSpace& space : kSpaces) {
    if (space.name == name_or_file) return space;
  }
  if (!is_yaml_file(name_or_file)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: is no space; there are autoformer-tiny, autoformer-small, "
                            "autoformer-base, alphas:MODEL, and .yaml files of AutoFormer",
                            name_or_file));
  }
  return section(name_or_file, "SEARCH_SPACE", [&](const Json& part) {
    const AutoformerSpace space{stem(name_or_file), list<int64_t>(part, "EMBED_DIM"),
                                list<int64_t>(part, "DEPTH"), list<int64_t>(part, "NUM_HEADS"),
                                list<double>(part, "MLP_RATIO")};
    // What its smallest and largest network can be, all between them can.
    const auto build = [&](auto one_of) {
      autoformer_network({{"embed_dim", *one_of(space.embed_dims)},
                          {"depth", *one_of(space.depths)},
                          {"heads", *one_of(space.heads)},
                          {"mlp_ratio", *one_of(space.mlp_ratios)}});
    };
    build([](const auto& values) { return std::min_element(values.begin(), values.end()); });
    build([](const auto& values) { return std::max_element(values.begin(), values.end()); });
    return space;
  });
}

ModelSpec autoformer_network(Json brief) {
  brief["head_dim"] = kHeadDim;
  ModelSpec spec = spec_from_brief(brief);
  spec.norm_eps = 1e-5;
  auto& vit = std::get<VitSpec>(spec.family);
  vit.pool = PoolKind::kAvg;
  for (BlockSpec& block : vit.blocks) block.mixer = {MixerKind::kRelative, kDistance};
  return spec;
}

ModelSpec read_autoformer_network(const std::string& path) {
  return section(path, "RETRAIN", [&](const Json& part) {
    return autoformer_network({{"name", stem(path)},
                               {"embed_dim", entry(part, "EMBED_DIM")},
                               {"depth", entry(part, "DEPTH")},
                               {"heads", entry(part, "NUM_HEADS")},
                               {"mlp_ratio", entry(part, "MLP_RATIO")}});
  });
}

}  // namespace adjoin
