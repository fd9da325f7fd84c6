#include "adjoin/search/sample.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <optional>
#include <set>

#include "adjoin/core/rng.h"
#include "adjoin/cost/cost.h"
#include "adjoin/spec/derive.h"

namespace adjoin::search {
namespace {

/// Different networks that `draw` gives; it gives none where one is above a limit.
std::vector<ModelSpec> different(int64_t count, uint64_t seed,
                                 const std::function<std::optional<ModelSpec>(Rng&)>& draw) {
  constexpr int64_t kMisses = 2000;  // in a row
  Rng rng(stream_key(seed, {0x73616d706c65}));
  std::set<std::string> seen;
  std::vector<ModelSpec> result;
  int64_t misses = 0;
  while (misses < kMisses && static_cast<int64_t>(result.size()) < count) {
    std::optional<ModelSpec> spec = draw(rng);
    ++misses;
    if (!spec || !seen.insert(spec->name).second) continue;
    result.push_back(std::move(*spec));
    misses = 0;
  }
  return result;
}

}  // namespace

std::vector<ModelSpec> sampled(const Space& space, int64_t count, uint64_t seed,
                               const Target& limits) {
  return different(count, seed, [&](Rng& rng) -> std::optional<ModelSpec> {
    std::vector<size_t> picks;
    Price price = space.rest();
    for (size_t block = 0; block < space.blocks(); ++block) {
      const auto choices = static_cast<int64_t>(space.alphas()[block].size());
      picks.push_back(static_cast<size_t>(rng.below(choices)));
      price += space.price(block, picks.back());
    }
    if (limits.share(price) > 1) return std::nullopt;
    ModelSpec spec = derive(space.large(), space.choice(picks), Geometry::kKept).spec;
    spec.name = fmt::format("{}-{}", space.large().name, fmt::join(space.alphas_of(picks), "."));
    return spec;
  });
}

std::vector<ModelSpec> sampled(const AutoformerSpace& space, int64_t count, uint64_t seed,
                               const Target& limits) {
  return different(count, seed, [&](Rng& rng) -> std::optional<ModelSpec> {
    const auto one_of = [&](const auto& values) {
      return values[static_cast<size_t>(rng.below(static_cast<int64_t>(values.size())))];
    };
    const int64_t width = one_of(space.embed_dims);
    const int64_t depth = one_of(space.depths);
    std::vector<int64_t> heads;
    std::vector<double> ratios;
    for (int64_t i = 0; i < depth; ++i) {
      heads.push_back(one_of(space.heads));
      ratios.push_back(one_of(space.mlp_ratios));
    }
    ModelSpec spec = autoformer_network(
        {{"embed_dim", width}, {"depth", depth}, {"heads", heads}, {"mlp_ratio", ratios}});
    std::vector<int64_t> hidden;
    for (const PlacedBlock& placed : placed_blocks(spec)) hidden.push_back(placed.block->hidden);
    spec.name = fmt::format("{}-{}-h{}-m{}", space.name, width, fmt::join(heads, "."),
                            fmt::join(hidden, "."));
    if (limits.macs || limits.params) {
      const Cost counted = cost(spec);
      if (limits.share({counted.macs.total(), counted.params}) > 1) return std::nullopt;
    }
    return spec;
  });
}

}  // namespace adjoin::search
