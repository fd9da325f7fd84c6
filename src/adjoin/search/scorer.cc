#include "adjoin/search/scorer.h"

#include <cmath>

#include "adjoin/proxy/ranking.h"
#include "adjoin/spec/derive.h"

namespace adjoin::search {

Scorer::Scorer(const Space& space, const std::string& proxy, uint64_t seed)
    : space_(space), proxy_(proxy), seed_(seed) {
  proxy::proxy_called(proxy);
}

double Scorer::operator()(const Choice& choice) const {
  constexpr int64_t kBatchSize = 16;
  const proxy::Proxy& proxy = proxy::proxy_called(proxy_);
  proxy::RankOptions options;
  options.proxies = {&proxy};
  options.seeds = {seed_};
  const auto batches = [&](const ModelSpec& spec) {
    const auto count = std::max<int64_t>(1, static_cast<int64_t>(proxy.batches));
    return proxy::random_batches(spec, kBatchSize, count, seed_);
  };
  const ModelSpec spec = derive(space_.large(), choice, Geometry::kKept).spec;
  const double score = proxy::score(spec, options, batches).scores[0];
  return std::isfinite(score) ? score : -INFINITY;
}

}  // namespace adjoin::search
