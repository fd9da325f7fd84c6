#include "adjoin/spec/model_spec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "adjoin/core/text.h"
#include "adjoin/spec/trunk.h"
#include "adjoin/spec/validate_block.h"

namespace adjoin {
namespace {

constexpr int64_t kVersion = 1;

/// The family word of each alternative of ModelSpec::family, in its order.
constexpr std::string_view kFamilies[] = {"vit", "t2t", "swin"};
static_assert(std::size(kFamilies) == std::variant_size_v<decltype(ModelSpec::family)>);

template <class Visitor>
void common_fields(Visitor& visit, ModelSpec& spec) {
  visit("name", spec.name);
  visit("img_size", spec.img_size, Range{1, 8192});
  visit("in_chans", spec.in_chans, Range{1, 1024});
  visit("num_classes", spec.num_classes, Range{1, 1e6});
  visit("qkv_bias", spec.qkv_bias);
  visit("norm_eps", spec.norm_eps, Range{1e-12, 1});
}

/// Every field of a spec, the family's own between the common ones and the skips.
template <class Visitor>
void all_fields(Visitor& visit, ModelSpec& spec) {
  int64_t version = kVersion;
  visit("version", version, Range{kVersion, kVersion});
  std::string family(family_name(spec));
  visit("family", family);
  common_fields(visit, spec);
  std::visit([&](auto& alternative) { fields(visit, alternative); }, spec.family);
  visit("skips", spec.skips);
}

template <size_t... I>
void choose_family(ModelSpec& spec, size_t index, std::index_sequence<I...>) {
  ((index == I ? void(spec.family.emplace<I>()) : void()), ...);
}

void validate_blocks(const ModelSpec& spec, const std::vector<PlacedBlock>& blocks) {
  if (blocks.empty() || blocks.size() > kMostBlocks) {
    throw Error(ErrorKind::kConfig, fmt::format("model.blocks: has {} blocks, must have 1 to {}",
                                                blocks.size(), kMostBlocks));
  }
  int64_t origin = -1;
  for (const PlacedBlock& placed : blocks) {
    const BlockSpec& block = *placed.block;
    validate_block(placed);
    if (block.origin <= origin) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("model.{}.origin: is {}, must be above that of the block before, {}",
                              placed.name, block.origin, origin));
    }
    origin = block.origin;
  }
  std::set<std::pair<int64_t, int64_t>> seen;
  for (const Skip& skip : spec.skips) {
    const std::string path = fmt::format("model.skips: {} -> {}", skip.from, skip.to);
    const auto count = static_cast<int64_t>(blocks.size());
    if (skip.from >= skip.to || skip.to >= count) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("{}: must go forward within blocks 0 to {}", path, count - 1));
    }
    if (blocks[skip.from].embed_dim != blocks[skip.to].embed_dim ||
        blocks[skip.from].tokens != blocks[skip.to].tokens) {
      throw Error(ErrorKind::kConfig, path + ": joins blocks of different shape");
    }
    if (!seen.emplace(skip.from, skip.to).second) {
      throw Error(ErrorKind::kConfig, path + ": stands twice");
    }
  }
}

/// A class token stands first: where every block is causal it sees nothing but itself.
void validate_pool(const ModelSpec& spec, const std::vector<PlacedBlock>& blocks) {
  const bool is_of_token = std::visit(
      [](const auto& family) {
        if constexpr (requires { family.pool; }) return family.pool == PoolKind::kToken;
        return false;
      },
      spec.family);
  const bool is_blind = std::all_of(blocks.begin(), blocks.end(), [](const PlacedBlock& placed) {
    return placed.block->mixer.is_causal;
  });
  if (is_of_token && is_blind) {
    throw Error(
        ErrorKind::kConfig,
        "model.pool: is token, but every mixer is causal, and the class token, which stands "
        "first, sees no other; set pool=avg");
  }
}

void place_blocks(const ModelSpec& spec, const VitSpec& vit, std::vector<PlacedBlock>& placed) {
  const int64_t tokens = vit_patches(spec, vit) + (vit.distilled ? 2 : 1);
  place_trunk_blocks(vit.blocks, vit.embed_dim, tokens, placed);
}

void place_blocks(const ModelSpec& spec, const T2tSpec& t2t, std::vector<PlacedBlock>& placed) {
  const std::vector<SplitShape> shapes = split_shapes(spec, t2t);
  const int64_t grid = shapes.empty() ? 0 : shapes.back().out_grid;  // not yet validated
  place_trunk_blocks(t2t.blocks, t2t.embed_dim, grid * grid + 1, placed);
}

void place_blocks(const ModelSpec& spec, const SwinSpec& swin, std::vector<PlacedBlock>& placed) {
  for (size_t s = 0; s < swin.stages.size(); ++s) {
    const SwinStage& stage = swin.stages[s];
    const int64_t grid = stage_grid(spec, swin, s);
    for (size_t b = 0; b < stage.blocks.size(); ++b) {
      placed.push_back({fmt::format("layers.{}.blocks.{}", s, b), &stage.blocks[b], stage.embed_dim,
                        grid * grid,
                        Window{grid, stage_window(spec, swin, s), stage.blocks[b].shift}});
    }
  }
}

}  // namespace

std::string_view family_name(const ModelSpec& spec) { return kFamilies[spec.family.index()]; }

Json spec_to_json(const ModelSpec& spec) {
  JsonWriter writer;
  ModelSpec copy = spec;
  all_fields(writer, copy);
  return std::move(writer.json);
}

ModelSpec spec_from_json(const Json& json) {
  if (!json.is_object()) throw_wrong_type("model", "an object", json);
  const auto family = json.find("family");
  if (family == json.end()) throw Error(ErrorKind::kConfig, "model: field \"family\" is missing");
  if (!family->is_string()) throw_wrong_type("model.family", "a word", *family);
  const auto* found =
      std::find(std::begin(kFamilies), std::end(kFamilies), family->get_ref<const std::string&>());
  if (found == std::end(kFamilies)) {
    throw Error(ErrorKind::kConfig, fmt::format("model.family: unknown value {}; legal: {}",
                                                describe(*family), fmt::join(kFamilies, ", ")));
  }
  ModelSpec spec;
  choose_family(spec, static_cast<size_t>(found - std::begin(kFamilies)),
                std::make_index_sequence<std::size(kFamilies)>());
  read_spec_fields(json, spec);
  validate(spec);
  return spec;
}

void read_spec_fields(const Json& json, ModelSpec& spec) {
  JsonReader reader(json, "model");
  all_fields(reader, spec);
  reader.finish();
}

ModelSpec spec_from_json(const Json& json, const std::string& path) {
  try {
    return spec_from_json(json);
  } catch (const Error& e) {
    throw Error(ErrorKind::kData, path + ": " + e.what());
  }
}

void validate(const ModelSpec& spec) {
  // One field check for every way in: what the ranges of `fields` refuse in a file they refuse
  // here.
  ModelSpec copy = spec;
  read_spec_fields(spec_to_json(spec), copy);
  if (!is_plain_text(spec.name)) {
    throw Error(ErrorKind::kConfig,
                fmt::format("model.name: {} is no plain UTF-8 text", in_quotes(spec.name)));
  }
  std::visit([&](const auto& family) { validate_family(spec, family); }, spec.family);
  validate_blocks(spec, placed_blocks(spec));
  validate_pool(spec, placed_blocks(spec));
}

std::vector<PlacedBlock> placed_blocks(const ModelSpec& spec) {
  std::vector<PlacedBlock> placed;
  std::visit([&](const auto& family) { place_blocks(spec, family, placed); }, spec.family);
  return placed;
}

}  // namespace adjoin
