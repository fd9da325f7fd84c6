#include "adjoin/spec/architecture.h"

#include <algorithm>

#include "adjoin/core/fields.h"

namespace adjoin {
namespace {

struct KeptBlock {
  std::string name;
  int64_t heads = 1;
  int64_t hidden = 1;
  int64_t of_heads = 1;  ///< of the large network
  int64_t of_hidden = 1;
  bool keep = true;
  NormPlacement norm = NormPlacement::kPre;
};

template <class Visitor>
void fields(Visitor& visit, KeptBlock& block) {
  visit("name", block.name);
  visit("heads", block.heads, Range{1, 1e6});
  visit("hidden", block.hidden, Range{1, 1e9});
  visit("of_heads", block.of_heads, Range{1, 1e6});
  visit("of_hidden", block.of_hidden, Range{1, 1e9});
  visit("keep", block.keep);
  visit("norm", block.norm);
}

struct Architecture {
  int64_t version = 1;
  std::string family;
  std::string model;
  std::vector<KeptBlock> blocks;
  std::vector<Skip> skips;
};

template <class Visitor>
void fields(Visitor& visit, Architecture& architecture) {
  visit("version", architecture.version, Range{1, 1});
  visit("family", architecture.family);
  visit("model", architecture.model);
  visit("blocks", architecture.blocks);
  visit("skips", architecture.skips);
}

/// Files may leave out what is as in the large network: blocks that stay, norms, no skips.
Json completed(Json json, const std::vector<PlacedBlock>& placed) {
  if (!json.is_object()) return json;
  json.emplace("skips", Json::array());
  const auto blocks = json.find("blocks");
  if (blocks == json.end() || !blocks->is_array()) return json;
  for (size_t i = 0; i < std::min(blocks->size(), placed.size()); ++i) {
    Json& block = (*blocks)[i];
    if (!block.is_object()) continue;
    block.emplace("keep", true);
    block.emplace("norm", to_json(placed[i].block->norm));
  }
  return json;
}

}  // namespace

Json architecture_to_json(const ModelSpec& large, const Choice& choice) {
  Architecture architecture{1, std::string(family_name(large)), large.name, {}, choice.skips};
  const auto placed = placed_blocks(large);
  for (size_t i = 0; i < placed.size(); ++i) {
    const BlockChoice& block = choice.blocks[i];
    architecture.blocks.push_back({placed[i].name, block.heads, block.hidden,
                                   placed[i].block->heads, placed[i].block->hidden, block.keep,
                                   block.norm});
  }
  return to_json(architecture);
}

bool is_architecture(const Json& json) {
  return json.is_object() && json.contains("blocks") && json.contains("model") &&
         !json.contains("img_size");
}

Choice architecture_from_json(const ModelSpec& large, const Json& json, const std::string& path) {
  Architecture architecture;
  const auto placed = placed_blocks(large);
  try {
    from_json(completed(json, placed), architecture, path);
  } catch (const Error& e) {
    throw Error(ErrorKind::kData, e.what());
  }
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: is an architecture of {}: {}", path, architecture.model, what));
  };
  if (architecture.family != family_name(large)) {
    refuse(
        fmt::format("a {}, but {} is a {}", architecture.family, large.name, family_name(large)));
  }
  if (architecture.blocks.size() != placed.size()) {
    refuse(fmt::format("{} blocks, but {} has {}", architecture.blocks.size(), large.name,
                       placed.size()));
  }
  Choice choice = keep_everything(large);
  for (size_t i = 0; i < placed.size(); ++i) {
    const KeptBlock& kept = architecture.blocks[i];
    BlockChoice& block = choice.blocks[i];
    if (kept.name != placed[i].name) {
      refuse(fmt::format("its block {} is {}, that of {} is {}", i, kept.name, large.name,
                         placed[i].name));
    }
    if (kept.of_heads != block.heads || kept.of_hidden != block.hidden) {
      refuse(fmt::format("{} has {} heads and {} hidden units there, but {} and {} in {}",
                         kept.name, kept.of_heads, kept.of_hidden, block.heads, block.hidden,
                         large.name));
    }
    if (kept.heads > block.heads || kept.hidden > block.hidden) {
      throw Error(
          ErrorKind::kData,
          fmt::format("{}: {} keeps more heads or hidden units than it has", path, kept.name));
    }
    block.heads = kept.heads;
    block.hidden = kept.hidden;
    block.keep = kept.keep;
    block.norm = kept.norm;
  }
  choice.skips = architecture.skips;
  return choice;
}

}  // namespace adjoin
