#include "adjoin/search/sample.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "adjoin/core/rng.h"
#include "adjoin/spec/derive.h"

namespace adjoin::search {

std::vector<ModelSpec> sampled(const Space& space, int64_t count, uint64_t seed,
                               const Target& limits) {
  constexpr int64_t kAttempts = 100;  // for each
  Rng rng(stream_key(seed, {0x73616d706c65}));
  std::set<std::vector<size_t>> seen;
  std::vector<ModelSpec> result;
  for (int64_t i = 0; i < count * kAttempts && static_cast<int64_t>(result.size()) < count; ++i) {
    std::vector<size_t> picks;
    Price price = space.rest();
    for (size_t block = 0; block < space.blocks(); ++block) {
      const auto choices = static_cast<int64_t>(space.alphas()[block].size());
      picks.push_back(static_cast<size_t>(rng.below(choices)));
      price += space.price(block, picks.back());
    }
    if (limits.share(price) > 1 || !seen.insert(picks).second) continue;
    ModelSpec spec = derive(space.large(), space.choice(picks), Geometry::kKept).spec;
    spec.name = fmt::format("{}-{}", space.large().name, fmt::join(space.alphas_of(picks), "."));
    result.push_back(std::move(spec));
  }
  return result;
}

}  // namespace adjoin::search
