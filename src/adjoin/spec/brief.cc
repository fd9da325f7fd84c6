#include "adjoin/spec/brief.h"

#include <fmt/ranges.h>

#include <cmath>
#include <set>
#include <sstream>

#include "adjoin/core/yaml.h"
#include "adjoin/spec/autoformer.h"
#include "adjoin/spec/catalog.h"
#include "adjoin/spec/overrides.h"

namespace adjoin {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::kConfig, message); }

/// One number for each block, given as one for all or one per block.
std::vector<double> per_block(const Json& json, const char* key, size_t depth) {
  if (json.is_number()) return std::vector<double>(depth, json.get<double>());
  std::vector<double> values;
  from_json(json, values, key);
  if (values.size() != depth) {
    refuse(fmt::format("{}: has {} numbers for {} blocks", key, values.size(), depth));
  }
  return values;
}

/// A whole number of a key, or what stands for one that is left out.
int64_t whole_number(const Json& json, const char* key, int64_t unsaid, bool is_needed) {
  const auto found = json.find(key);
  if (found == json.end()) {
    if (is_needed) refuse(fmt::format("{}: is missing", key));
    return unsaid;
  }
  int64_t value = 0;
  from_json(*found, value, key, Range{1, 1e6});
  return value;
}

}  // namespace

bool is_brief(const Json& json) {
  return json.is_object() && !json.contains("family") && json.contains("embed_dim");
}

ModelSpec spec_from_brief(const Json& json) {
  if (!json.is_object()) refuse("is no object of embed_dim, depth, heads, mlp_ratio, ..");
  const std::vector<std::string> keys = {"name",       "embed_dim", "depth",
                                         "heads",      "mlp_ratio", "head_dim",
                                         "patch_size", "img_size",  "num_classes"};
  for (const auto& [key, value] : json.items()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      refuse(fmt::format("unknown key \"{}\"{}", key, suggestion(key, keys)));
    }
  }
  const int64_t embed_dim = whole_number(json, "embed_dim", 0, true);
  const int64_t depth = whole_number(json, "depth", 0, true);
  if (depth > kMostBlocks) refuse(fmt::format("depth: is {}, at most {}", depth, kMostBlocks));
  for (const char* key : {"heads", "mlp_ratio"}) {
    if (!json.contains(key)) refuse(fmt::format("{}: is missing", key));
  }
  const auto blocks = static_cast<size_t>(depth);
  const std::vector<double> heads = per_block(json.at("heads"), "heads", blocks);
  const std::vector<double> ratios = per_block(json.at("mlp_ratio"), "mlp_ratio", blocks);
  const Json head_dim = json.value("head_dim", Json("embed_dim/heads"));
  const bool is_shared = head_dim == Json("embed_dim/heads");
  if (!is_shared && !head_dim.is_number_integer()) {
    refuse("head_dim: must be a whole number or \"embed_dim/heads\"");
  }
  std::vector<Override> changes;
  const auto set = [&](const std::string& key, int64_t value) {
    changes.push_back({key, std::to_string(value)});
  };
  set("img_size", whole_number(json, "img_size", 224, false));
  set("patch_size", whole_number(json, "patch_size", 16, false));
  set("num_classes", whole_number(json, "num_classes", 1000, false));
  set("embed_dim", embed_dim);
  set("depth", depth);
  std::vector<int64_t> counts;
  std::vector<int64_t> dims;
  for (size_t i = 0; i < blocks; ++i) {
    if (!(heads[i] >= 1 && heads[i] <= 1024) || heads[i] != std::floor(heads[i])) {
      refuse(fmt::format("heads: block {} has {:g}", i, heads[i]));
    }
    const auto count = static_cast<int64_t>(heads[i]);
    if (is_shared && embed_dim % count != 0) {
      refuse(fmt::format("heads: {} of block {} do not divide embed_dim {}", count, i, embed_dim));
    }
    counts.push_back(count);
    dims.push_back(is_shared ? embed_dim / count : head_dim.get<int64_t>());
    const double hidden = std::floor(static_cast<double>(embed_dim) * ratios[i]);
    if (!(hidden >= 1 && hidden < 1e6)) refuse(fmt::format("mlp_ratio: {:g}", ratios[i]));
    set(fmt::format("blocks.{}.hidden", i), static_cast<int64_t>(hidden));
  }
  changes.push_back({"heads", fmt::format("{}", fmt::join(counts, ","))});
  changes.push_back({"head_dim", fmt::format("{}", fmt::join(dims, ","))});
  ModelSpec spec = with_overrides(catalog_spec("vit_tiny_patch16_224"), changes);
  spec.name = "unnamed";
  if (json.contains("name")) from_json(json.at("name"), spec.name, "name");
  return spec;
}

std::vector<ModelSpec> read_architectures(const std::string& path) {
  if (is_yaml_file(path)) return {read_autoformer_network(path)};
  constexpr size_t kMostBytes = size_t{256} << 20;
  std::istringstream text(read_text_file(path, kMostBytes));
  std::vector<ModelSpec> networks;
  std::set<std::string> names;
  int64_t number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = fmt::format("{}: line {}", path, number);
    try {
      const Json json = parse_json(line, where);
      networks.push_back(is_brief(json) ? spec_from_brief(json) : spec_from_json(json));
    } catch (const Error& e) {
      const std::string what = e.what();
      throw Error(ErrorKind::kData, what.starts_with(path) ? what : where + ": " + what);
    }
    if (!names.insert(networks.back().name).second) {
      throw Error(ErrorKind::kData,
                  fmt::format("{}: the name {} came before", where, networks.back().name));
    }
  }
  if (networks.empty()) throw Error(ErrorKind::kData, path + ": holds no architecture");
  return networks;
}

}  // namespace adjoin
