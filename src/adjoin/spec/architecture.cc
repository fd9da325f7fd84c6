#include "adjoin/spec/architecture.h"

#include "adjoin/core/fields.h"

namespace adjoin {
namespace {

struct KeptBlock {
  std::string name;
  int64_t heads = 1;
  int64_t hidden = 1;
  int64_t of_heads = 1;  ///< of the large network
  int64_t of_hidden = 1;
};

template <class Visitor>
void fields(Visitor& visit, KeptBlock& block) {
  visit("name", block.name);
  visit("heads", block.heads, Range{1, 1e6});
  visit("hidden", block.hidden, Range{1, 1e9});
  visit("of_heads", block.of_heads, Range{1, 1e6});
  visit("of_hidden", block.of_hidden, Range{1, 1e9});
}

struct Architecture {
  int64_t version = 1;
  std::string family;
  std::string model;
  std::vector<KeptBlock> blocks;
};

template <class Visitor>
void fields(Visitor& visit, Architecture& architecture) {
  visit("version", architecture.version, Range{1, 1});
  visit("family", architecture.family);
  visit("model", architecture.model);
  visit("blocks", architecture.blocks);
}

}  // namespace

Json architecture_to_json(const ModelSpec& large, const Choice& choice) {
  Architecture architecture{1, std::string(family_name(large)), large.name, {}};
  const auto placed = placed_blocks(large);
  for (size_t i = 0; i < placed.size(); ++i) {
    architecture.blocks.push_back({placed[i].name, choice.blocks[i].heads, choice.blocks[i].hidden,
                                   placed[i].block->heads, placed[i].block->hidden});
  }
  return to_json(architecture);
}

bool is_architecture(const Json& json) {
  return json.is_object() && json.contains("blocks") && json.contains("model") &&
         !json.contains("img_size");
}

Choice architecture_from_json(const ModelSpec& large, const Json& json, const std::string& path) {
  Architecture architecture;
  try {
    from_json(json, architecture, path);
  } catch (const Error& e) {
    throw Error(ErrorKind::kData, e.what());
  }
  const auto placed = placed_blocks(large);
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
  }
  return choice;
}

}  // namespace adjoin
